"""Logs what goes wrong with an experiment as a whole, where its owner looks.

An experiment has no log of its own: ``det experiment logs`` shows that of its first trial. Its row has the reason too,
for an experiment that never had a trial, and for ``det experiment describe``.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from libs.db.engine import Connection
from libs.db.tables.tasks import allocations
from libs.db.tables.trials import trial_tasks, trials
from services.scheduler.transactions.allocation_messages import note
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow, Locked, lock_one


async def say_in_log(
    connection: Connection, experiment_id: int, text: str, *, now: datetime, out: OutboxBuffer
) -> None:
    """Add a line to the log of the experiment's first trial, behind those of its last attempt; nothing without any."""
    newest = (
        select(allocations.c.allocation_id)
        .join(trial_tasks, trial_tasks.c.task_id == allocations.c.task_id)
        .join(trials, trials.c.id == trial_tasks.c.trial_id)
        .where(trials.c.experiment_id == experiment_id)
        .order_by(trials.c.id, trial_tasks.c.position.desc(), allocations.c.requested_at.desc())
        .limit(1)
    )
    found = (await connection.execute(newest)).scalar()
    if found is None:
        return
    locked: Locked[AllocationRow] = Locked()
    row = await lock_one(connection, AllocationRow, found, locked)
    if row is not None:
        note(row, text, now=now, out=out, level="ERROR")
