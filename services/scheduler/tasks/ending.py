"""Ends tasks that run once when their allocation has ended, whatever ended it, except that what may be preempted, and
was, goes back to the queue and runs anew.

How a trial reacts is decided in ``experiments/``, how a generic task in ``generic.py``.
Source: docs/reference/harness-protocol.md 17.3.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import select, text

from libs.clock import Clock
from libs.db.engine import Connection, Database
from libs.db.tables.tasks import allocations, tasks
from libs.db.transactions import in_transaction
from libs.events.changes import JobChanged, TaskChanged
from libs.states.generic_task import TaskTrigger
from services.scheduler.allocations.termination import is_over
from services.scheduler.allocations.time_limits import has_used_up
from services.scheduler.deletion.checkpoint_gc import TASK_TYPE as GC_TASK
from services.scheduler.deletion.checkpoint_gc import record_outcome
from services.scheduler.tasks.generic_exits import trigger_of
from services.scheduler.tasks.next_allocation import request_next
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow, Locked, TaskRow, lock_one

_UNUSED: Final = text("UPDATE interactive_tasks SET last_active_at = NULL WHERE task_id = :task")
"""Nobody could use it while it waits, so its idle time begins with its next start."""


def comes_back(row: AllocationRow) -> bool:
    """Whether the task of an allocation that is over had only to make room, and runs again when there is some."""
    return row.preemptible and trigger_of(row) == TaskTrigger.LEFT and not has_used_up(row)


class TaskEnding:
    def __init__(self, *, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def process_task_exit(self, allocation: str) -> int | None:
        """End the task of an allocation that is over, unless it may get another; returns the experiment it is of."""
        return await in_transaction(self._db, lambda connection: self._settle(connection, allocation))

    async def _settle(self, connection: Connection, allocation: str) -> int | None:
        locked_tasks: Locked[TaskRow] = Locked()
        locked: Locked[AllocationRow] = Locked()
        row = await lock_one(connection, AllocationRow, allocation, locked)
        if row is None or row.exit_processed or not is_over(row):
            return None
        task = await lock_one(connection, TaskRow, row.task_id, locked_tasks)
        if task is None or task.task_type in ("TRIAL", "GENERIC"):
            return None
        now = self._clock.now()
        row.exit_processed = True
        out = OutboxBuffer()
        out.no_more_lines(task=row.task_id, allocation=row.allocation_id)
        if task.task_type == GC_TASK and task.experiment_id is not None:
            await record_outcome(connection, task.experiment_id, row, now=now, out=out)
        if task.end_time is None and comes_back(row):
            await connection.execute(_UNUSED, {"task": row.task_id})
            await request_next(connection, row, now=now, out=out)
        elif task.end_time is None:
            task.end_time = now
            out.announce(TaskChanged(task_id=task.task_id, task_type=task.task_type, what="ended"))
            out.announce(JobChanged(job_id=row.job_id, what="ended", pool=row.pool))
        await locked.write(connection)
        await locked_tasks.write(connection)
        await out.flush(connection)
        return task.experiment_id


async def owner_of(connection: Connection, allocation: str) -> tuple[str, int | None] | None:
    """Task type, and experiment if any, of the task that an allocation belongs to."""
    query = (
        select(tasks.c.task_type, tasks.c.experiment_id)
        .join(allocations, allocations.c.task_id == tasks.c.task_id)
        .where(allocations.c.allocation_id == allocation)
    )
    found = (await connection.execute(query)).first()
    return None if found is None else (found.task_type, found.experiment_id)
