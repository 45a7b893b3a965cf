"""Changes of trials that others run, and of their experiments with them: reported to the api, or lost to the scheduler.

Whoever calls holds the lock of the experiment. Source: docs/reference/experiments.md 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.outbox import announce
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.events.changes import ExperimentChanged, TaskChanged, TrialChanged
from libs.states import experiment as experiment_states
from libs.states import trial as trial_states
from libs.states.experiment import ExperimentState
from libs.states.trial import TrialState
from libs.states.unmanaged import state_of_trials


async def move_unmanaged_trials(
    connection: AsyncConnection,
    experiment_id: int,
    trial_ids: Sequence[int],
    state: TrialState,
    *,
    values: Mapping[str, Any] | None = None,
    now: datetime,
) -> None:
    """Give trials of one experiment a state, and the experiment what follows from it.

    values  more columns to set; without an ``end_time``, those that are over end now
    """
    is_over = state in trial_states.TERMINAL
    columns = {"state": state.value, "end_time": now if is_over else None, **(values or {})}
    ids = any_of(trials.c.id, trial_ids)
    await connection.execute(update(trials).where(ids).values(**columns))
    of_trials = select(trial_tasks.c.task_id).where(any_of(trial_tasks.c.trial_id, trial_ids))
    ended = update(tasks).where(tasks.c.task_id.in_(of_trials)).values(end_time=columns["end_time"])
    task_ids = (await connection.execute(ended.returning(tasks.c.task_id))).scalars().all()
    if is_over:
        await announce(
            connection, *(TaskChanged(task_id=task, task_type="TRIAL", what="ended") for task in sorted(task_ids))
        )
    await announce(
        connection,
        *(
            TrialChanged(trial_id=trial, experiment_id=experiment_id, what="state", state=state.value)
            for trial in trial_ids
        ),
    )
    await _settle(connection, experiment_id, now=now)


async def _settle(connection: AsyncConnection, experiment_id: int, *, now: datetime) -> None:
    """Give the experiment the state of its trials, and their last end; one that is being deleted stays as it is."""
    row = (await connection.execute(select(experiments).where(experiments.c.id == experiment_id))).one()
    states = select(trials.c.state).where(trials.c.experiment_id == experiment_id).distinct()
    state = state_of_trials((await connection.execute(states)).scalars())
    if row.state == state or row.state in {ExperimentState.DELETING, ExperimentState.DELETE_FAILED}:
        return
    progress = 1.0 if state is ExperimentState.COMPLETED else row.progress
    last_end = select(func.max(trials.c.end_time)).where(trials.c.experiment_id == experiment_id).scalar_subquery()
    values = {
        "state": state.value,
        "progress": progress,
        "end_time": func.coalesce(last_end, now) if state in experiment_states.TERMINAL else None,
    }
    await connection.execute(update(experiments).where(experiments.c.id == experiment_id).values(**values))
    await announce(
        connection,
        ExperimentChanged(
            experiment_id=experiment_id,
            what="state",
            state=state.value,
            name=row.config.get("name") or "",
            job_id=row.job_id,
            project_id=row.project_id,
            progress=progress,
        ),
    )
