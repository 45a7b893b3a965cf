"""Joins and leaves an all-gather, each in one transaction under the lock of the allocation
(docs/reference/harness-protocol.md 12.1)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Row, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.outbox import announce
from libs.db.tables.tasks import gather_members
from libs.db.task_lines import add_task_line
from libs.errors import FailedPrecondition
from libs.events.changes import AllocationChanged
from libs.states.allocation import AllocationState
from services.api.actions.tasks.allocations import lock_allocation, point_proxy_to, set_ready
from services.api.all_gather.group import (
    Member,
    abandoned,
    answer_of,
    first_address,
    is_complete,
    is_slow,
    open_group,
)

SLOW_LINE: Final = (
    "some ranks are taking a long time to connect to master during all gather; when running on kubernetes this may "
    "happen because only some of the pods have been scheduled; it is possible that some pods will never be scheduled "
    "without adding compute resources or pausing / killing other experiments in the cluster"
)
"""Word for word what users know, and search for (docs/reference/kubernetes.md 11)."""


class Peer(Struct, frozen=True, kw_only=True):
    """One request of one peer; ``holder`` is the request, which no other has."""

    allocation_id: str
    request_uuid: str
    holder: str
    num_peers: int
    data: Any


async def join(connection: AsyncConnection, peer: Peer, now: datetime) -> list[Any] | None:
    """Add a peer, or let a later request of it take over; returns what was gathered, None while others are missing.

    A peer whose group was complete gets the same answer again. The one that completes the group makes the allocation
    ready. Raises InvalidRequest, NotFound, and
    FailedPrecondition for an allocation that has ended.
    """
    allocation = await _lock_live(connection, peer.allocation_id)
    answer = answer_of(await load_members(connection, peer.allocation_id), peer.request_uuid)
    if answer is not None:
        return answer
    before = await _without_abandoned(connection, peer.allocation_id, now)
    own = next((member for member in before if member.request_uuid == peer.request_uuid), None)
    values = {"num_peers": peer.num_peers, "data": peer.data, "holder": peer.holder, "seen_at": now}
    key = {"allocation_id": peer.allocation_id, "request_uuid": peer.request_uuid}
    await connection.execute(
        insert(gather_members)
        .values(**key, **values, joined_at=now)
        .on_conflict_do_update(index_elements=list(key), set_=values)
    )
    await connection.execute(
        update(gather_members)
        .where(gather_members.c.allocation_id == peer.allocation_id, gather_members.c.gathered.is_(None))
        .values(num_peers=peer.num_peers)
    )
    members = open_group(await load_members(connection, peer.allocation_id))
    if is_complete(members):
        return await _complete(connection, allocation, members, now)
    if own is not None and own.holder != peer.holder:
        await announce(connection, _gathered(allocation))  # the request before this one has to give up
    return None


async def leave(connection: AsyncConnection, peer: Peer) -> None:
    """Take a peer out whose client has gone; nothing changes once the group was complete, or for a taken membership."""
    await lock_allocation(connection, peer.allocation_id)
    await connection.execute(
        delete(gather_members).where(
            gather_members.c.allocation_id == peer.allocation_id,
            gather_members.c.request_uuid == peer.request_uuid,
            gather_members.c.holder == peer.holder,
            gather_members.c.gathered.is_(None),
        )
    )


async def refresh(connection: AsyncConnection, peer: Peer, now: datetime) -> list[Member]:
    """Say that somebody still waits; returns the open group, without those for whom nobody does.

    Tells the owner of the task, once, when it takes long. Raises as ``join`` does.
    """
    allocation = await _lock_live(connection, peer.allocation_id)
    await connection.execute(
        update(gather_members)
        .where(gather_members.c.allocation_id == peer.allocation_id, gather_members.c.holder == peer.holder)
        .values(seen_at=now)
    )
    members = await _without_abandoned(connection, peer.allocation_id, now)
    if not is_complete(members) and is_slow(members, now):
        await connection.execute(
            update(gather_members).where(gather_members.c.allocation_id == peer.allocation_id).values(noted_at=now)
        )
        await add_task_line(connection, task=allocation.task_id, allocation=peer.allocation_id, text=SLOW_LINE, now=now)
    return members


async def load_members(connection: AsyncConnection, allocation_id: str) -> list[Member]:
    """The members of an allocation's groups, in the order in which they joined."""
    columns = [gather_members.c[name] for name in Member.__struct_fields__]
    rows = await connection.execute(
        select(*columns)
        .where(gather_members.c.allocation_id == allocation_id)
        .order_by(gather_members.c.joined_at, gather_members.c.request_uuid)
    )
    return [Member(**row._mapping) for row in rows]


async def _lock_live(connection: AsyncConnection, allocation_id: str) -> Row[Any]:
    allocation = await lock_allocation(connection, allocation_id)
    if allocation.state == AllocationState.TERMINATED:
        raise FailedPrecondition(f"allocation '{allocation_id}' has ended")
    return allocation


async def _without_abandoned(connection: AsyncConnection, allocation_id: str, now: datetime) -> list[Member]:
    members = open_group(await load_members(connection, allocation_id))
    gone = {member.request_uuid for member in abandoned(members, now)}
    if gone:
        await connection.execute(
            delete(gather_members).where(
                gather_members.c.allocation_id == allocation_id, gather_members.c.request_uuid.in_(gone)
            )
        )
    return [member for member in members if member.request_uuid not in gone]


async def _complete(
    connection: AsyncConnection, allocation: Row[Any], members: list[Member], now: datetime
) -> list[Any]:
    """Close the group; returns what it has gathered, in the order in which the members came."""
    gathered = [member.data for member in members]
    await connection.execute(
        update(gather_members)
        .where(gather_members.c.allocation_id == allocation.allocation_id, gather_members.c.gathered.is_(None))
        .values(gathered=gathered)
    )
    if len(members) > 1 and (address := first_address(members)) is not None and not allocation.is_ready:
        await point_proxy_to(connection, allocation, address)
    await set_ready(connection, allocation, now)
    await announce(connection, _gathered(allocation))
    return gathered


def _gathered(allocation: Row[Any]) -> AllocationChanged:
    return AllocationChanged(
        allocation_id=allocation.allocation_id,
        task_id=allocation.task_id,
        what="gathered",
        state=allocation.state,
        pool=allocation.pool,
    )
