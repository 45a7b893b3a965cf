"""Nodes and their slots; clients call nodes agents."""

from __future__ import annotations

from typing import Any, Final

from libs.errors import NotFound
from services.api.access.rules import require_admin
from services.api.actions.nodes import disable_node, enable_node
from services.api.app import App
from services.api.http.call import Call
from services.api.http.pagination import list_page
from services.api.http.routing import Route
from services.api.queries.nodes import agents, load_overrides, load_pod_states
from services.api.wire.agents import (
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


async def get_agents(call: Call[App, GetAgentsQuery, None]) -> GetAgentsResponse:
    query = call.query
    found = await _all(call.app)
    if query.sort_by is SortAgents.TIME:
        found.sort(key=lambda agent: (agent.registered_time or "", agent.id))
    if query.order_by is OrderBy.DESC:
        found.reverse()
    page, pagination = list_page(found, offset=query.offset, limit=query.limit)
    return GetAgentsResponse(agents=[_without(agent, query) for agent in page], pagination=pagination)


async def get_agent(call: Call[App, GetAgentQuery, None]) -> AgentResponse:
    return AgentResponse(agent=_without(await _one(call), call.query))


async def get_slots(call: Call[App, None, None]) -> SlotsResponse:
    return SlotsResponse(slots=list((await _one(call)).slots.values()))


async def get_slot(call: Call[App, None, None]) -> SlotResponse:
    """Slot ids have leading zeros, which clients leave out."""
    agent = await _one(call)
    wanted = call.path_str("slotId")
    found: Slot | None = agent.slots.get(wanted) or agent.slots.get(wanted.zfill(3))
    if found is None:
        raise NotFound("slot", wanted)
    return SlotResponse(slot=found)


async def disable_agent(call: Call[App, None, DisableAgentRequest]) -> AgentResponse:
    require_admin(call.principal, "disable agents")
    agent = await _one(call)
    await disable_node(call.app.db, agent.id, drain=call.body.drain, pools=agent.resource_pools)
    return AgentResponse(agent=await _one(call))


async def enable_agent(call: Call[App, None, None]) -> AgentResponse:
    require_admin(call.principal, "enable agents")
    agent = await _one(call)
    await enable_node(call.app.db, agent.id, pools=agent.resource_pools)
    return AgentResponse(agent=await _one(call))


async def _all(app: App) -> list[Agent]:
    async with app.db.read() as connection:
        overrides = await load_overrides(connection)
        pod_states = await load_pod_states(connection)
    return agents(app.capacity.all(), overrides, pod_states)


async def _one(call: Call[App, Any, Any]) -> Agent:
    wanted = call.path_str("agentId")
    found = next((agent for agent in await _all(call.app) if agent.id == wanted), None)
    if found is None:
        raise NotFound("agent", wanted)
    return found


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
    Route(method="GET", path="/api/v1/agents", handler=get_agents, query=GetAgentsQuery, response=GetAgentsResponse),
    Route(method="GET", path=_ONE, handler=get_agent, query=GetAgentQuery, response=AgentResponse),
    Route(
        method="POST", path=f"{_ONE}/disable", handler=disable_agent, body=DisableAgentRequest, response=AgentResponse
    ),
    Route(method="POST", path=f"{_ONE}/enable", handler=enable_agent, response=AgentResponse),
    Route(method="GET", path=f"{_ONE}/slots", handler=get_slots, response=SlotsResponse),
    Route(method="GET", path=f"{_ONE}/slots/{{slotId}}", handler=get_slot, response=SlotResponse),
)
