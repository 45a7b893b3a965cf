"""Nodes and their slots; clients call nodes agents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from libs.errors import NotFound, Unimplemented
from libs.events.capacity import PoolCapacity
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.cluster.agents import disable_node, enable_node
from services.api.app import App
from services.api.cluster_admin.launcher_client import mark_node
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.cluster.agents import agents, listed, load_overrides, load_states, with_marks
from services.api.queries.pagination import list_page
from services.api.wire.cluster.agents import (
    Agent,
    AgentResponse,
    DisableAgentRequest,
    GetAgentQuery,
    GetAgentsQuery,
    GetAgentsResponse,
    Slot,
    SlotResponse,
    SlotsResponse,
    SortAgents,
)
from services.api.wire.ordering import OrderBy

HIDDEN: Final = "********"


async def get_agents(call: Call[App, GetAgentsQuery, None]) -> GetAgentsResponse:
    query = call.query
    found = await _agents(call.app, listed(call.app.capacity.all()))
    if query.sort_by is SortAgents.TIME:
        found.sort(key=lambda agent: (agent.registered_time or "", agent.id))
    if query.order_by is OrderBy.DESC:
        found.reverse()
    page, pagination = list_page(found, offset=query.offset, limit=query.limit)
    shown = [_shown_to(call.rights, _without(agent, query)) for agent in page]
    return GetAgentsResponse(agents=shown, pagination=pagination)


async def get_agent(call: Call[App, GetAgentQuery, None]) -> AgentResponse:
    return AgentResponse(agent=_shown_to(call.rights, _without(await _one(call), call.query)))


async def get_slots(call: Call[App, None, None]) -> SlotsResponse:
    return SlotsResponse(slots=list(_shown_to(call.rights, await _one(call)).slots.values()))


async def get_slot(call: Call[App, None, None]) -> SlotResponse:
    """Slot ids have leading zeros, which clients leave out."""
    agent = _shown_to(call.rights, await _one(call))
    wanted = call.path_str("slotId")
    found: Slot | None = agent.slots.get(wanted) or agent.slots.get(wanted.zfill(3))
    if found is None:
        raise NotFound("slot", wanted)
    return SlotResponse(slot=found)


async def change_slot(call: Call[App, None, None]) -> SlotResponse:
    """Neither a cluster nor a launcher of processes takes single slots out of service, so this is always refused."""
    found = (await get_slot(call)).slot
    raise Unimplemented(
        f"slot {found.id} of agent {call.path_str('agentId')}: slots are not enabled or disabled one by one, "
        "but all of a node (det agent enable, det agent disable)"
    )


async def disable_agent(call: Call[App, None, DisableAgentRequest]) -> AgentResponse:
    agent = await _one(call)
    drain = call.body.drain
    await _mark(call.app, agent, "no-schedule" if drain else "no-execute")
    await disable_node(call.app.db, agent.id, drain=drain, pools=agent.resource_pools)
    return AgentResponse(agent=await _one(call, marked=(False, drain)))


async def enable_agent(call: Call[App, None, None]) -> AgentResponse:
    agent = await _one(call)
    await _mark(call.app, agent, "")
    await enable_node(call.app.db, agent.id, pools=agent.resource_pools)
    return AgentResponse(agent=await _one(call, marked=(True, False)))


async def _mark(app: App, agent: Agent, mark: Literal["no-execute", "no-schedule", ""]) -> None:
    """Have nodes of a cluster say themselves that they are out of service: there it is not us who places pods.

    First, so that nothing has changed when it is refused.
    """
    known = (app.capacity.of(pool) for pool in agent.resource_pools)
    pool = next((each.pool for each in known if each is not None and each.backend == "kubernetes"), None)
    if pool is not None:
        await mark_node(app.bus, pool, agent.id, mark)


async def _agents(app: App, capacity: Iterable[PoolCapacity]) -> list[Agent]:
    async with app.db.read() as connection:
        overrides = await load_overrides(connection)
        states = await load_states(connection)
    return agents(capacity, overrides, states)


async def _one(call: Call[App, Any, Any], *, marked: tuple[bool, bool] | None = None) -> Agent:
    """A node by its name. ``marked``, when it is known better than its launcher has said: enabled and draining."""
    wanted = call.path_str("agentId")
    marks = {} if marked is None else {wanted: marked}
    everything = await _agents(call.app, with_marks(call.app.capacity.all(), marks))
    found = next((agent for agent in everything if agent.id == wanted), None)
    if found is None:
        raise NotFound("agent", wanted)
    return found


def _shown_to(rights: UserRights, agent: Agent) -> Agent:
    """Without what runs on it and where it is, for those who may not know."""
    if not rights.may(Action.VIEW_AGENT_DETAILS):
        agent.addresses = [HIDDEN] if agent.addresses else []
        agent.version = HIDDEN if agent.version else ""
        agent.containers = {}
        for slot in agent.slots.values():
            slot.container = None
    return agent


def _without(agent: Agent, query: GetAgentsQuery | GetAgentQuery) -> Agent:
    if query.exclude_slots:
        agent.slots = {}
    if query.exclude_containers:
        agent.containers = {}
        for slot in agent.slots.values():
            slot.container = None
    return agent


_ONE: Final = "/api/v1/agents/{agentId}"

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/agents",
        handler=get_agents,
        query=GetAgentsQuery,
        response=GetAgentsResponse,
        summary="List nodes with their slots",
    ),
    Route(
        method="GET",
        path=_ONE,
        handler=get_agent,
        query=GetAgentQuery,
        response=AgentResponse,
        summary="Get a node with its slots",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/disable",
        handler=disable_agent,
        body=DisableAgentRequest,
        response=AgentResponse,
        summary="Disable a node, so that nothing new starts on it",
    ),
    Route(method="POST", path=f"{_ONE}/enable", handler=enable_agent, response=AgentResponse, summary="Enable a node"),
    Route(
        method="GET",
        path=f"{_ONE}/slots",
        handler=get_slots,
        response=SlotsResponse,
        summary="List the slots of a node",
    ),
    Route(
        method="GET",
        path=f"{_ONE}/slots/{{slotId}}",
        handler=get_slot,
        response=SlotResponse,
        summary="Get a slot of a node",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/slots/{{slotId}}/enable",
        handler=change_slot,
        response=SlotResponse,
        summary="Enable a single slot, which is always refused",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/slots/{{slotId}}/disable",
        handler=change_slot,
        response=SlotResponse,
        summary="Disable a single slot, which is always refused",
    ),
)
