"""Carries out what is asked of generic tasks: ends their allocations, requests new ones, and says what became of them.

The state of a task is what is wanted; its allocations are brought there, from whatever they are. So it makes no
difference which requests, exits and restarts came before, or in which order.
Source: docs/reference/tasks-and-cli.md 6.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select

from libs.clock import Clock
from libs.db.engine import Connection, Database
from libs.db.tables.tasks import allocations, jobs
from libs.db.transactions import in_transaction
from libs.events.changes import JobChanged, TaskChanged
from libs.states.generic_task import AT_REST, STOPPING, TERMINAL, GenericTaskState, TaskTrigger, step
from libs.tasks.generic import TASK_TYPE
from services.scheduler.allocations.ended import clear_ended
from services.scheduler.allocations.termination import is_over, kill, terminate
from services.scheduler.allocations.time_limits import has_used_up
from services.scheduler.tasks.generic_exits import KILLED, PAUSED, trigger_of
from services.scheduler.tasks.next_allocation import request_next
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import (
    AllocationRow,
    GenericTaskRow,
    Locked,
    TaskRow,
    columns_of,
    lock_many,
    lock_one,
    row_of,
)


class GenericTasks:
    """Locks are taken in the order generic task, allocations, task."""

    def __init__(self, *, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def reconcile(self, task_id: str) -> None:
        """Do what is due with one task; nothing for one that does not exist or is of another type."""
        await in_transaction(self._db, lambda connection: self._settle(connection, task_id))

    async def _settle(self, connection: Connection, task_id: str) -> None:
        locked: Locked[GenericTaskRow] = Locked()
        task = await lock_one(connection, GenericTaskRow, task_id, locked)
        if task is None:
            return
        locked_allocations: Locked[AllocationRow] = Locked()
        unprocessed = (allocations.c.task_id == task_id) & ~allocations.c.exit_processed
        rows = await lock_many(connection, AllocationRow, unprocessed, locked_allocations)
        now = self._clock.now()
        out = OutboxBuffer()
        before = GenericTaskState(task.state)
        state = advance(before, rows, now=now, out=out)
        if state == GenericTaskState.ACTIVE and all(row.exit_processed for row in rows):
            last = await _newest(connection, task_id)
            if has_used_up(last):
                state = step(state, TaskTrigger.KILLED) or state  # there is no time left for another one
            else:
                await request_next(connection, last, now=now, out=out)
        task.state = state
        if state != before:
            out.announce(TaskChanged(task_id=task_id, task_type=TASK_TYPE, what="state", state=state))
        await locked.write(connection)
        await locked_allocations.write(connection)
        if state != before and state in AT_REST:
            await _end(connection, task_id, state, now=now, out=out)
        await clear_ended(connection, out.events, now=now)
        await out.flush(connection)


def advance(
    state: GenericTaskState, rows: list[AllocationRow], *, now: datetime, out: OutboxBuffer
) -> GenericTaskState:
    """The state after the exits in ``rows`` (of one task, not reacted to yet), which are asked to leave if need be."""
    for row in rows:
        if state == GenericTaskState.STOPPING_PAUSED:
            terminate(row, reason=PAUSED, now=now, out=out)
        elif state == GenericTaskState.STOPPING_CANCELED:
            kill(row, reason=KILLED, now=now, out=out)
        if is_over(row):
            row.exit_processed = True
            out.no_more_lines(task=row.task_id, allocation=row.allocation_id)
            state = step(state, trigger_of(row)) or state
    if state in STOPPING and all(row.exit_processed for row in rows):
        state = step(state, TaskTrigger.LEFT) or state
    return state


async def _newest(connection: Connection, task_id: str) -> AllocationRow:
    newest = (
        columns_of(AllocationRow)
        .where(allocations.c.task_id == task_id)
        .order_by(func.length(allocations.c.allocation_id).desc(), allocations.c.allocation_id.desc())
        .limit(1)
    )
    return row_of(AllocationRow, (await connection.execute(newest)).mappings().one())


async def _end(
    connection: Connection, task_id: str, state: GenericTaskState, *, now: datetime, out: OutboxBuffer
) -> None:
    """Nothing of it runs any more, for good or until it goes on."""
    locked: Locked[TaskRow] = Locked()
    task = await lock_one(connection, TaskRow, task_id, locked)
    assert task is not None, "the row of the generic task refers to it"
    # One that is killed while it is paused ended when it was paused.
    task.end_time = task.end_time or now
    out.announce(TaskChanged(task_id=task_id, task_type=TASK_TYPE, what="ended", state=state))
    if state in TERMINAL and task.job_id is not None:
        pool = await connection.scalar(select(jobs.c.pool).where(jobs.c.job_id == task.job_id))
        out.announce(JobChanged(job_id=task.job_id, what="ended", pool=pool or ""))
    await locked.write(connection)
