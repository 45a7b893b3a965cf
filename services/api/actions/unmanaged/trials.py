"""Trials of experiments that run elsewhere: created, started, and heard from (docs/reference/experiments.md 12)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import count_in, part
from libs.db.new_trials import NewTrialTask, Origin, insert_trial_tasks, take_local_ids
from libs.db.outbox import announce
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.db.unmanaged import move_unmanaged_trials
from libs.errors import FailedPrecondition, InvalidRequest, NotFound
from libs.events.changes import TaskChanged, TrialChanged
from libs.ids import new_uuid, trial_task_id
from libs.states.experiment import ExperimentState
from libs.states.trial import TrialState
from libs.states.unmanaged import REPORTABLE
from services.api.actions.experiment_lock import lock_experiment
from services.api.actions.trials.reports import lock_experiment_of
from services.api.actions.unmanaged.external_ids import check_external_id
from services.api.wire.trials.unmanaged import CreateTrialRequest

_ONLY_UNMANAGED = "only unmanaged trials are supported"


class Started(Struct, frozen=True, kw_only=True):
    """From where a trial goes on; in its first run there is no checkpoint."""

    run_id: int
    latest_checkpoint: str | None
    steps_completed: int


async def create_trial(connection: AsyncConnection, wanted: CreateTrialRequest, *, now: datetime) -> int:
    """Add a trial, and return its id. Raises NotFound, InvalidRequest, FailedPrecondition."""
    experiment = await _lock_parent(connection, wanted)
    return await _insert(connection, experiment, wanted, external_id=None, now=now)


async def put_trial(connection: AsyncConnection, wanted: CreateTrialRequest, external_id: str, *, now: datetime) -> int:
    """The trial of that name, with new hyperparameters if it is there already. Raises as ``create_trial`` does."""
    check_external_id("externalTrialId", external_id)
    experiment = await _lock_parent(connection, wanted)
    same = (trials.c.experiment_id == experiment.id) & (trials.c.external_id == external_id)
    found = (await connection.execute(select(trials).where(same).with_for_update())).one_or_none()
    if found is None:
        return await _insert(connection, experiment, wanted, external_id=external_id, now=now)
    if wanted.hparams is not None and wanted.hparams != found.hparams:
        await connection.execute(update(trials).where(trials.c.id == found.id).values(hparams=wanted.hparams))
        await announce(
            connection,
            TrialChanged(
                trial_id=found.id,
                experiment_id=experiment.id,
                what="state",
                state=found.state,
                hparams=wanted.hparams,
            ),
        )
    trial_id: int = found.id
    return trial_id


async def start_trial(connection: AsyncConnection, trial_id: int, *, resume: bool, now: datetime) -> Started:
    """It runs, from here on under the next run id; what earlier runs still report is refused.

    resume  whether it may have been started before
    Raises NotFound, InvalidRequest, FailedPrecondition.
    """
    trial = await _lock_trial(connection, trial_id)
    if trial.run_id and not resume:
        raise InvalidRequest("trial has already been started")
    run_id = trial.run_id + 1
    await move_unmanaged_trials(
        connection,
        trial.experiment_id,
        [trial_id],
        TrialState.RUNNING,
        values={"run_id": run_id, "last_activity": now, "error": None},
        now=now,
    )
    latest = await _latest_checkpoint(connection, trial_id) if run_id > 1 else None
    if latest is None:
        return Started(run_id=run_id, latest_checkpoint=None, steps_completed=0)
    return Started(run_id=run_id, latest_checkpoint=latest.uuid, steps_completed=latest.steps_completed or 0)


async def report_state(connection: AsyncConnection, trial_id: int, state: str, *, now: datetime) -> None:
    """A trial says what has become of it. Raises NotFound, InvalidRequest, FailedPrecondition."""
    if state not in REPORTABLE:
        known = ", ".join(sorted(f"STATE_{one}" for one in REPORTABLE))
        raise InvalidRequest(f"state: expected one of {known}, got STATE_{state}")
    trial = await _lock_trial(connection, trial_id)
    # Said again, perhaps because the answer was lost: it ended when it first said so.
    values = {"end_time": trial.end_time} if state == trial.state else {}
    await move_unmanaged_trials(
        connection,
        trial.experiment_id,
        [trial_id],
        TrialState(state),
        values={"last_activity": now, **values},
        now=now,
    )


async def note_heartbeat(connection: AsyncConnection, trial_id: int, *, now: datetime) -> None:
    """A trial lives. Raises NotFound, InvalidRequest."""
    beat = (
        update(trials)
        .where(trials.c.id == trial_id, trials.c.experiment_id == experiments.c.id, experiments.c.unmanaged)
        .values(last_activity=now)
    )
    if (await connection.execute(beat)).rowcount == 0:
        await lock_experiment_of(connection, trial_id)
        raise InvalidRequest(_ONLY_UNMANAGED)


async def trial_of_external_ids(connection: AsyncConnection, experiment: str, trial: str) -> int:
    """The id of a trial by the names that were given to it and to its experiment. Raises NotFound."""
    found: int | None = await connection.scalar(
        select(trials.c.id)
        .join(experiments, experiments.c.id == trials.c.experiment_id)
        .where(experiments.c.external_id == experiment, trials.c.external_id == trial)
    )
    if found is None:
        raise NotFound("trial", f"{experiment}/{trial}")
    return found


async def _lock_parent(connection: AsyncConnection, wanted: CreateTrialRequest) -> Row[Any]:
    if not wanted.unmanaged:
        raise InvalidRequest(_ONLY_UNMANAGED)
    experiment = await lock_experiment(connection, wanted.experiment_id)
    if not experiment.unmanaged:
        raise InvalidRequest("trials can only be created on unmanaged experiments")
    _check_stays(experiment)
    return experiment


async def _lock_trial(connection: AsyncConnection, trial_id: int) -> Row[Any]:
    """A trial of an unmanaged experiment, and its experiment, locked."""
    experiment = await lock_experiment_of(connection, trial_id)
    if not experiment.unmanaged:
        raise InvalidRequest(_ONLY_UNMANAGED)
    _check_stays(experiment)
    return (await connection.execute(select(trials).where(trials.c.id == trial_id).with_for_update())).one()


def _check_stays(experiment: Any) -> None:
    if experiment.state in {ExperimentState.DELETING, ExperimentState.DELETE_FAILED}:
        raise FailedPrecondition(f"experiment {experiment.id} is being deleted")


async def _insert(
    connection: AsyncConnection,
    experiment: Row[Any],
    wanted: CreateTrialRequest,
    *,
    external_id: str | None,
    now: datetime,
) -> int:
    """Insert a trial with its task, which has no job: nothing of ours runs it."""
    local_id, workspace_id = await take_local_ids(connection, experiment.project_id, 1)
    hparams = wanted.hparams or {}
    inserted = await connection.execute(
        insert(trials)
        .values(
            experiment_id=experiment.id,
            project_id=experiment.project_id,
            local_id=local_id,
            external_id=external_id,
            hparams=hparams,
            state=TrialState.PAUSED.value,
            start_time=now,
            last_activity=now,
            log_retention_days=count_in(part(experiment.config, "retention_policy"), "log_retention_days"),
        )
        .returning(trials.c.id)
    )
    trial_id: int = inserted.scalar_one()
    link = NewTrialTask(trial_id, 0, trial_task_id(experiment.id, external_id or new_uuid()))
    origin = Origin(
        id=experiment.id,
        project_id=experiment.project_id,
        job_id=None,
        owner_id=experiment.owner_id,
        config=experiment.config,
    )
    await insert_trial_tasks(connection, origin, [link], workspace_id=workspace_id, now=now)
    await announce(
        connection,
        TaskChanged(task_id=link.task_id, task_type="TRIAL", what="created"),
        TrialChanged(
            trial_id=trial_id,
            experiment_id=experiment.id,
            what="created",
            state=TrialState.PAUSED.value,
            task_id=link.task_id,
            hparams=hparams,
        ),
    )
    return trial_id


async def _latest_checkpoint(connection: AsyncConnection, trial_id: int) -> Row[Any, Any] | None:
    query = (
        select(checkpoints.c.uuid, checkpoints.c.steps_completed)
        .where(checkpoints.c.trial_id == trial_id, checkpoints.c.state == "COMPLETED")
        .order_by(checkpoints.c.steps_completed.desc().nulls_last(), checkpoints.c.report_time.desc())
        .limit(1)
    )
    return (await connection.execute(query)).one_or_none()
