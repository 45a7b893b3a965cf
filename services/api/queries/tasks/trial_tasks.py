"""The trial that a task belongs to."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.errors import NotFound


class TrialOfTask(Struct, frozen=True, kw_only=True):
    task_type: str
    trial_id: int | None
    """None for tasks of other types."""
    experiment_id: int | None


async def trial_of_task(connection: AsyncConnection, task_id: str) -> TrialOfTask:
    """Raises NotFound when there is no such task."""
    row = (
        await connection.execute(
            select(tasks.c.task_type, trials.c.id, trials.c.experiment_id)
            .outerjoin(trial_tasks, trial_tasks.c.task_id == tasks.c.task_id)
            .outerjoin(trials, trials.c.id == trial_tasks.c.trial_id)
            .where(tasks.c.task_id == task_id)
        )
    ).one_or_none()
    if row is None:
        raise NotFound("task", task_id)
    return TrialOfTask(task_type=row.task_type, trial_id=row.id, experiment_id=row.experiment_id)
