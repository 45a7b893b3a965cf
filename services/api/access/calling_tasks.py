"""Resources of a calling task: its trial, its experiment, and the checkpoints that its configuration names."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations, tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.ids import AllocationId
from services.api.access.principal import CallingTask


async def calling_task(connection: AsyncConnection, allocation_id: AllocationId) -> CallingTask:
    """What is a task's own. None of it changes while the allocation lasts.

    Of an allocation that is not there, nothing is known but its id.
    """
    query = (
        select(
            tasks.c.task_id,
            trials.c.id.label("trial_id"),
            func.coalesce(trials.c.experiment_id, tasks.c.experiment_id).label("experiment_id"),
            trials.c.warm_start_checkpoint_uuid,
            _source("source_trial_id").label("source_trial_id"),
            _source("source_checkpoint_uuid").label("source_checkpoint_uuid"),
        )
        .select_from(allocations.join(tasks, tasks.c.task_id == allocations.c.task_id))
        .outerjoin(trial_tasks, trial_tasks.c.task_id == tasks.c.task_id)
        .outerjoin(trials, trials.c.id == trial_tasks.c.trial_id)
        .outerjoin(experiments, experiments.c.id == trials.c.experiment_id)
        .where(allocations.c.allocation_id == allocation_id)
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return CallingTask(allocation_id=allocation_id)
    return CallingTask(
        allocation_id=allocation_id,
        task_id=row.task_id,
        trial_id=row.trial_id,
        experiment_id=row.experiment_id,
        source_trial_id=None if row.source_trial_id is None else int(row.source_trial_id),
        source_checkpoints=frozenset({row.warm_start_checkpoint_uuid, row.source_checkpoint_uuid} - {None}),
    )


def _source(name: str) -> ColumnElement[Any]:
    element: ColumnElement[Any] = experiments.c.config["searcher"][name].astext
    return element
