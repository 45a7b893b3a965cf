"""Inserting trials: the first ones, which the api makes with the experiment, and those that its search adds later.

Source: docs/reference/experiments.md 0 (identifiers) and 1.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import part
from libs.db.prepared.statements import PreparedStatement, as_document
from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trial_tasks
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
    "ran_s": 0.0,
}
"""Columns of a trial that has ended and is to go on in a new task, beside its state."""


_COUNT: Final = PreparedStatement("""
    UPDATE projects SET max_local_id = max_local_id + :count WHERE id = :project_id RETURNING max_local_id, workspace_id
""")
_INSERT: Final = PreparedStatement("""
    WITH wanted AS (
        SELECT * FROM unnest(:local_ids::int[], :request_ids::text[], :seeds::bigint[], :hparams::text[],
                             :task_ids::text[])
                      WITH ORDINALITY AS wanted (local_id, request_id, seed, hparams, task_id, place)
    ), trial AS (
        INSERT INTO trials (experiment_id, project_id, local_id, request_id, seed, hparams, state, start_time,
                            warm_start_checkpoint_uuid, log_retention_days)
        SELECT :experiment_id::bigint, :project_id::bigint, local_id, request_id, seed, hparams::jsonb, :state::text,
               :now::timestamptz, :warm_start::text, :log_retention_days::int
        FROM wanted ORDER BY place
        RETURNING id, request_id
    ), task AS (
        INSERT INTO tasks (task_id, task_type, job_id, experiment_id, owner_id, workspace_id, start_time)
        SELECT task_id, 'TRIAL', :job_id::text, :experiment_id, :owner_id::bigint, :workspace_id::bigint, :now
        FROM wanted ORDER BY place
    ), link AS (
        INSERT INTO trial_tasks (trial_id, position, task_id)
        SELECT trial.id, 0, wanted.task_id FROM trial JOIN wanted USING (request_id)
    ), best AS (
        UPDATE experiments SET best_trial_id = (SELECT min(id) FROM trial) WHERE id = :experiment_id AND :is_best::bool
    )
    SELECT id, request_id FROM trial
""")


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
    first, workspace_id = await take_local_ids(connection, experiment.project_id, len(wanted))
    return await insert_numbered_trials(
        connection,
        experiment,
        wanted,
        first=first,
        workspace_id=workspace_id,
        state=state,
        warm_start=warm_start,
        now=now,
    )


async def insert_numbered_trials(
    connection: AsyncConnection,
    experiment: Origin,
    wanted: Sequence[Create],
    *,
    first: int,
    workspace_id: int,
    state: TrialState,
    warm_start: str | None,
    now: datetime,
    is_best: bool = False,
) -> list[NewTrialTask]:
    """As ``insert_trials``, with local ids from ``first`` on, which were taken for them.

    is_best  the first of them counts as the best trial of its experiment
    """
    task_ids = [trial_task_id(experiment.id, create.request_id) for create in wanted]
    found = await _INSERT.rows(
        connection,
        local_ids=list(range(first, first + len(wanted))),
        request_ids=[create.request_id for create in wanted],
        seeds=[create.trial_seed for create in wanted],
        hparams=[as_document(create.hparams) for create in wanted],
        task_ids=task_ids,
        experiment_id=experiment.id,
        project_id=experiment.project_id,
        job_id=experiment.job_id,
        owner_id=experiment.owner_id,
        workspace_id=workspace_id,
        state=state.value,
        warm_start=warm_start,
        log_retention_days=part(experiment.config, "retention_policy").get("log_retention_days"),
        now=now,
        is_best=is_best,
    )
    ids = {row["request_id"]: row["id"] for row in found}
    return [NewTrialTask(ids[create.request_id], 0, task_id) for create, task_id in zip(wanted, task_ids, strict=True)]


async def take_local_ids(connection: AsyncConnection, project_id: int, count: int) -> tuple[int, int]:
    """The first of the next ``count`` numbers for trials of a project, and the workspace of the project.

    Locks the row of the project.
    """
    (row,) = await _COUNT.rows(connection, project_id=project_id, count=count)
    return row["max_local_id"] - count + 1, row["workspace_id"]


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
