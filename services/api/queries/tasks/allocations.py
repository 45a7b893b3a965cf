"""Allocations as the REST interface shows them, and the devices that were found in them."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.tasks import accelerator_data, allocations, tasks
from libs.errors import NotFound
from libs.states.allocation import AllocationState
from services.api.wire.base import timestamp
from services.api.wire.tasks.allocations import AcceleratorData, Allocation, TaskState

_QUEUED: Final = (AllocationState.PENDING, AllocationState.ASSIGNED)


async def load_allocation(connection: AsyncConnection, allocation_id: str) -> Allocation:
    """One allocation. Raises NotFound."""
    query = select(allocations).where(allocations.c.allocation_id == allocation_id)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise NotFound("allocation", allocation_id)
    return wire_allocation(row)


def shown_state(state: str) -> TaskState:
    """The state of an allocation as users see it: one without pods is queued."""
    return TaskState.QUEUED if state in _QUEUED else TaskState[state]


def wire_allocation(row: Any) -> Allocation:
    """A row of ``allocations`` as clients see it (docs/reference/harness-protocol.md 8.1)."""
    return Allocation(
        task_id=row.task_id,
        state=shown_state(row.state),
        is_ready=row.is_ready,
        start_time=timestamp(row.start_time) or UNSET,
        end_time=timestamp(row.end_time) or UNSET,
        allocation_id=row.allocation_id,
        slots=row.slots,
        exit_reason=UNSET if row.exit_reason is None else row.exit_reason,
        status_code=UNSET if row.status_code is None else row.status_code,
    )


async def are_slots_wanted(connection: AsyncConnection, allocation_id: str) -> bool:
    """Whether an allocation holds slots, and another one of its pool waits for some."""
    held = allocations.alias("held")
    waiting = select(allocations.c.allocation_id).where(
        allocations.c.pool == held.c.pool,
        allocations.c.released_at.is_(None),
        allocations.c.assigned_at.is_(None),
        allocations.c.slots > 0,
    )
    query = select(held.c.allocation_id).where(
        held.c.allocation_id == allocation_id, held.c.slots > 0, waiting.correlate(held).exists()
    )
    return await connection.scalar(query) is not None


async def list_accelerators(connection: AsyncConnection, task_id: str) -> list[AcceleratorData]:
    """The devices of all containers of a task, newest first. Raises NotFound."""
    if await connection.scalar(select(tasks.c.task_id).where(tasks.c.task_id == task_id)) is None:
        raise NotFound("task", task_id)
    rows = await connection.execute(
        select(accelerator_data, allocations.c.pool)
        .join(allocations, allocations.c.allocation_id == accelerator_data.c.allocation_id)
        .where(accelerator_data.c.task_id == task_id)
        .order_by(accelerator_data.c.id.desc())
    )
    return [
        AcceleratorData(
            container_id=row.container_id,
            allocation_id=row.allocation_id,
            node_name=row.node_name,
            task_id=row.task_id,
            accelerator_type=row.accelerator_type,
            accelerator_uuids=list(row.accelerator_uuids),
            resource_pool=row.pool,
        )
        for row in rows
    ]
