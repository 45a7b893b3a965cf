"""Reports of a task about its allocation: it is ready or waits, its address, the devices that it found."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row, exists, insert, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.outbox import announce
from libs.db.tables.tasks import accelerator_data, allocations
from libs.db.task_lines import add_task_line
from libs.errors import InvalidRequest, NotFound
from libs.events.changes import AllocationChanged
from libs.ids import task_of_allocation
from libs.states.allocation import CLUSTER_PREEMPTS, AllocationState, at_least
from services.api.actions.tasks.activity import touch


class Accelerators(Struct, frozen=True, kw_only=True):
    """The devices that a container of an allocation has found."""

    node_name: str
    container_id: str
    kind: str
    uuids: Sequence[str]


def check_allocation_id(allocation_id: str) -> str:
    """The id itself; raises InvalidRequest when it is none."""
    if task_of_allocation(allocation_id) is None:
        raise InvalidRequest(f"invalid allocation id '{allocation_id}'")
    return allocation_id


async def lock_allocation(connection: AsyncConnection, allocation_id: str) -> Row[Any]:
    """The row of an allocation, locked until the transaction ends. Raises InvalidRequest, NotFound."""
    query = select(allocations).where(allocations.c.allocation_id == check_allocation_id(allocation_id))
    row = (await connection.execute(query.with_for_update())).one_or_none()
    if row is None:
        raise NotFound("allocation", allocation_id)
    return row


async def set_ready(connection: AsyncConnection, allocation: Row[Any], now: datetime) -> None:
    """Note that the service in a locked allocation works; from now on it can be asked to leave. Idempotent."""
    if allocation.is_ready or allocation.state == AllocationState.TERMINATED:
        return
    ending = at_least(AllocationState(allocation.state), AllocationState.TERMINATING)
    # Also from WAITING, which comes later on the ladder: what was waited for has come.
    state = allocation.state if ending else AllocationState.RUNNING
    await _set(connection, allocation, is_ready=True, state=state)
    await add_task_line(
        connection,
        task=allocation.task_id,
        allocation=allocation.allocation_id,
        text=f"Service of {allocation.name} is available",
        now=now,
    )
    await announce(connection, _changed(allocation, "ready", state))


async def report_ready(connection: AsyncConnection, allocation_id: str, now: datetime) -> None:
    """The task says that its service works. Raises InvalidRequest, NotFound, as all functions here do."""
    await set_ready(connection, await lock_allocation(connection, allocation_id), now)


async def report_waiting(connection: AsyncConnection, allocation_id: str) -> None:
    """The task says that it waits for something; no news of one that has come further."""
    allocation = await lock_allocation(connection, allocation_id)
    if at_least(AllocationState(allocation.state), AllocationState.WAITING):
        return
    await _set(connection, allocation, state=AllocationState.WAITING)
    await announce(connection, _changed(allocation, "state", AllocationState.WAITING))


async def acknowledge_preemption(connection: AsyncConnection, allocation_id: str) -> None:
    """The task will leave because it was asked to: its end is not the end of its work."""
    allocation = await lock_allocation(connection, allocation_id)
    if not allocation.preempt_acked and allocation.state != AllocationState.TERMINATED:
        await _set(connection, allocation, preempt_acked=True)


async def request_preemption(connection: AsyncConnection, allocation_id: str) -> None:
    """Something outside of our sight has told the task that it has to leave: note it for the scheduler.

    The scheduler asks its training code to leave, or ends it where that cannot be asked
    (docs/reference/scheduling.md 8.1).
    """
    allocation = await lock_allocation(connection, allocation_id)
    is_leaving = allocation.preempt_reason is not None or allocation.killed_at is not None
    if is_leaving or allocation.state == AllocationState.TERMINATED:
        return
    await _set(connection, allocation, preempt_reason=CLUSTER_PREEMPTS)
    await announce(connection, _changed(allocation, "preemption_requested", allocation.state))


async def request_kill(connection: AsyncConnection, allocation_id: str, *, reason: str) -> None:
    """Note that somebody wants the allocation to end now; the scheduler ends it. One that ends anyway is left alone.

    reason  stands in the log of its task
    """
    allocation = await lock_allocation(connection, allocation_id)
    # What was killed to make room would come back, as long as nobody has reacted to its end.
    may_come_back = allocation.preemptible and not allocation.exit_processed and allocation.kill_reason != reason
    is_left_alone = allocation.kill_reason is not None or allocation.state == AllocationState.TERMINATED
    if may_come_back or not is_left_alone:
        await _set(connection, allocation, kill_reason=reason)
        await announce(connection, _changed(allocation, "kill_requested", allocation.state))


async def set_proxy_address(connection: AsyncConnection, allocation_id: str, address: str, *, now: datetime) -> None:
    """Where the ports of the task can be reached; of several pods the last one counts, until they know their ranks.

    From ``now`` on a service that nobody uses counts as idle.
    """
    allocation = await lock_allocation(connection, allocation_id)
    if allocation.num_pods > 1 and allocation.is_ready:
        return  # rank 0 is known, and this is a pod that comes late
    await touch(connection, allocation.task_id, now)
    await point_proxy_to(connection, allocation, address)


async def point_proxy_to(connection: AsyncConnection, allocation: Row[Any], address: str) -> None:
    """Let the proxy lead to ``address``; ``allocation`` is locked."""
    if allocation.proxy_address != address and allocation.state != AllocationState.TERMINATED:
        await _set(connection, allocation, proxy_address=address)
        await announce(connection, _changed(allocation, "proxy", allocation.state))


async def record_accelerators(connection: AsyncConnection, allocation_id: str, found: Accelerators) -> None:
    """Remember the devices of a container; the same report again changes nothing."""
    allocation = await lock_allocation(connection, allocation_id)
    values = {
        "allocation_id": allocation_id,
        "task_id": allocation.task_id,
        "node_name": found.node_name,
        "container_id": found.container_id,
        "accelerator_type": found.kind,
    }
    uuids = literal(list(found.uuids), JSONB)
    columns = accelerator_data.c
    same = select(columns.id).where(
        *(columns[name] == value for name, value in values.items()), columns.accelerator_uuids == uuids
    )
    if not await connection.scalar(select(exists(same))):
        await connection.execute(insert(accelerator_data).values(**values, accelerator_uuids=uuids))


async def require_allocation(connection: AsyncConnection, allocation_id: str) -> None:
    """Raises InvalidRequest or NotFound unless the allocation exists."""
    query = select(allocations.c.allocation_id).where(allocations.c.allocation_id == check_allocation_id(allocation_id))
    if await connection.scalar(query) is None:
        raise NotFound("allocation", allocation_id)


async def _set(connection: AsyncConnection, allocation: Row[Any], **values: Any) -> None:
    changed = update(allocations).where(allocations.c.allocation_id == allocation.allocation_id)
    await connection.execute(changed.values(**values))


def _changed(allocation: Row[Any], what: Any, state: str) -> AllocationChanged:
    return AllocationChanged(
        allocation_id=allocation.allocation_id,
        task_id=allocation.task_id,
        what=what,
        state=state,
        pool=allocation.pool,
    )
