"""Requests another allocation for a task that goes on."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.ids import allocation_id
from libs.states.allocation import AllocationState
from services.scheduler.allocations.exits import was_taken_back
from services.scheduler.allocations.time_limits import ran_s
from services.scheduler.transactions.allocation_messages import changed, note
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow, insert_rows

# Of a job that may start in several pools, the one in which it is queued first.
_OWN: Final = PreparedStatement("SELECT pool, num_pods, time_limit_s FROM pool_offers WHERE job_id = :job AND rank = 0")


class _Home(NamedTuple):
    pool: str
    num_pods: int
    time_limit_s: int | None


async def request_next(connection: Connection, last: AllocationRow, *, now: datetime, out: OutboxBuffer) -> None:
    """An allocation like the one before, except that it may be preempted if the task has shown that it comes back, and
    that it waits in its own pool again where the last one had started in another."""
    own = await _OWN.rows(connection, job=last.job_id)
    home = _Home(**own[0]) if own else _Home(last.pool, last.num_pods, last.time_limit_s)
    run = int(last.allocation_id.rpartition(".")[2]) + 1
    row = AllocationRow(
        allocation_id=allocation_id(last.task_id, run),
        task_id=last.task_id,
        job_id=last.job_id,
        name=last.name,
        pool=home.pool,
        slots=last.slots,
        num_pods=home.num_pods,
        preemptible=last.preemptible or not was_taken_back(last),
        preemption_timeout_s=last.preemption_timeout_s,
        state=AllocationState.PENDING,
        requested_at=now,
        time_limit_s=home.time_limit_s,
        ran_before_s=ran_s(last),
    )
    await insert_rows(connection, [row])
    note(row, f"Scheduling {row.name} (id: {row.allocation_id})", now=now, out=out)
    out.announce(changed(row, "requested"))
