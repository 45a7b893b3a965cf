"""Inserting trials: the first ones, which the api makes with the experiment, and those that its search adds later.

Source: docs/reference/experiments.md 0 (identifiers) and 1.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct
from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import part
from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.db.tables.workspaces import projects
from libs.ids import TaskId, trial_task_id
from libs.searchers.actions import Create
from libs.states.trial import TrialState

BEGUN_AGAIN: Final[Mapping[str, Any]] = {
    "restarts": 0,
    "end_time": None,
    "stopped_by_searcher": False,
    "early_exit_reason": None,
    "early_exit_deadline": None,
    "transient_ends": 0,
    "not_before": None,
    "error": None,
}
"""Columns of a trial that has ended and is to go on in a new task, beside its state."""


class Origin(Struct, frozen=True, kw_only=True):
    """The experiment that trials come from."""

    id: int
    project_id: int
    job_id: str | None
    """None when nobody queues its trials, because they run elsewhere."""
    owner_id: int
    config: dict[str, Any]


class NewTrialTask(NamedTuple):
    trial_id: int
    position: int
    """Among the tasks of the trial; 0 is the first."""
    task_id: TaskId


async def insert_trials(
    connection: AsyncConnection,
    experiment: Origin,
    wanted: Sequence[Create],
    *,
    state: TrialState,
    warm_start: str | None,
    now: datetime,
) -> list[NewTrialTask]:
    """Insert trials, each with its first task, under the next local ids of the project; in the order of ``wanted``.

    warm_start  checkpoint that they start from
    Locks the row of the project.
    """
    if not wanted:
        return []
    retention = part(experiment.config, "retention_policy")
    first, workspace_id = await take_local_ids(connection, experiment.project_id, len(wanted))
    values = [
        {
            "experiment_id": experiment.id,
            "project_id": experiment.project_id,
            "local_id": number,
            "request_id": create.request_id,
            "seed": create.trial_seed,
            "hparams": create.hparams,
            "state": state.value,
            "start_time": now,
            "warm_start_checkpoint_uuid": warm_start,
            "log_retention_days": retention.get("log_retention_days"),
        }
        for number, create in enumerate(wanted, start=first)
    ]
    statement = insert(trials).returning(trials.c.id, sort_by_parameter_order=True)
    ids = (await connection.execute(statement, values)).scalars()
    inserted = [
        NewTrialTask(trial_id, 0, trial_task_id(experiment.id, create.request_id))
        for trial_id, create in zip(ids, wanted, strict=True)
    ]
    await insert_trial_tasks(connection, experiment, inserted, workspace_id=workspace_id, now=now)
    return inserted


async def take_local_ids(connection: AsyncConnection, project_id: int, count: int) -> tuple[int, int]:
    """The first of the next ``count`` numbers for trials of a project, and the workspace of the project.

    Locks the row of the project.
    """
    counter = (
        update(projects)
        .where(projects.c.id == project_id)
        .values(max_local_id=projects.c.max_local_id + count)
        .returning(projects.c.max_local_id, projects.c.workspace_id)
    )
    last, workspace_id = (await connection.execute(counter)).one()
    return last - count + 1, workspace_id


async def insert_trial_tasks(
    connection: AsyncConnection, experiment: Origin, links: Sequence[NewTrialTask], *, workspace_id: int, now: datetime
) -> None:
    """Insert tasks of trials that exist."""
    rows: list[dict[str, Any]] = [
        {
            "task_id": link.task_id,
            "task_type": "TRIAL",
            "job_id": experiment.job_id,
            "experiment_id": experiment.id,
            "owner_id": experiment.owner_id,
            "workspace_id": workspace_id,
            "start_time": now,
        }
        for link in links
    ]
    await connection.execute(insert(tasks), rows)
    await connection.execute(insert(trial_tasks), [link._asdict() for link in links])
