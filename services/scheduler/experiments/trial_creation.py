"""Creates trials that a search asks for: once, however often it asks; they run again when a search begins again.

A search that starts from scratch with the same seed asks for the same request ids. Then a trial that completed is
closed at once, and any other one continues where it was, in a new task. Source: docs/reference/experiments.md 0, 4 and
7.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from libs.config.stored import count_in, part, text_in
from libs.db.any_of import any_of
from libs.db.new_trials import BEGUN_AGAIN, NewTrialTask, Origin, insert_trial_tasks, insert_trials
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.trials import trial_tasks, trials
from libs.events.changes import TaskChanged
from libs.ids import trial_task_id
from libs.searchers.actions import Create
from libs.states.experiment import ExperimentState
from libs.states.trial import TrialState
from services.scheduler.experiments.search import Search, SearchFailedError
from services.scheduler.transactions.locked_experiment import LockedExperiment
from services.scheduler.transactions.rows import TrialRow


async def create_trials(locked: LockedExperiment, search: Search, wanted: Sequence[Create]) -> None:
    """See to it that each wanted trial exists, and tell the search."""
    ids = [create.request_id for create in wanted]
    query = select(trials.c.request_id, trials.c.id, trials.c.state).where(
        trials.c.experiment_id == locked.experiment.id, any_of(trials.c.request_id, ids)
    )
    known = {found.request_id: found for found in await locked.connection.execute(query)}
    await _insert(locked, [create for create in wanted if create.request_id not in known])
    for create in wanted:
        search.created(create.request_id)
        found = known.get(create.request_id)
        if found is None:
            continue
        if found.state == TrialState.COMPLETED:
            search.ended(create.request_id, TrialState.COMPLETED)
        else:
            await _run_again(locked, found.id)


def _initial_state(locked: LockedExperiment) -> TrialState:
    return TrialState.ACTIVE if locked.state == ExperimentState.ACTIVE else TrialState.PAUSED


def _origin(locked: LockedExperiment) -> Origin:
    row = locked.experiment
    return Origin(id=row.id, project_id=row.project_id, job_id=row.job_id, owner_id=row.owner_id, config=row.config)


async def _insert(locked: LockedExperiment, wanted: Sequence[Create]) -> None:
    if not wanted:
        return
    warm_start = await _warm_start(locked)
    inserted = await insert_trials(
        locked.connection, _origin(locked), wanted, state=_initial_state(locked), warm_start=warm_start, now=locked.now
    )
    for create, (trial_id, _, task) in zip(wanted, inserted, strict=True):
        locked.add(_fresh(locked, trial_id, create, warm_start), task)
        _announce_task(locked, task)
    if text_in(part(locked.experiment.config, "searcher"), "name") == "single":
        locked.experiment.best_trial_id = inserted[0].trial_id


def _fresh(locked: LockedExperiment, trial_id: int, create: Create, warm_start: str | None) -> TrialRow:
    return TrialRow(
        id=trial_id,
        experiment_id=locked.experiment.id,
        request_id=create.request_id,
        seed=create.trial_seed,
        hparams=create.hparams,
        state=_initial_state(locked),
        restarts=0,
        run_id=0,
        end_time=None,
        warm_start_checkpoint_uuid=warm_start,
        stopped_by_searcher=False,
        early_exit_reason=None,
        early_exit_deadline=None,
        blocked_nodes=[],
        transient_ends=0,
        not_before=None,
        error=None,
        ran_s=0.0,
    )


async def _run_again(locked: LockedExperiment, trial_id: int) -> None:
    """Continue a trial of an earlier search of the same experiment, in a task of its own."""
    row = locked.trial(trial_id) or await locked.lock_trial(trial_id)
    if locked.open_allocation(row) is not None:
        return  # it runs, and will go on doing so
    row.state = _initial_state(locked)
    for column, value in BEGUN_AGAIN.items():
        setattr(row, column, value)
    query = select(trial_tasks.c.position).where(trial_tasks.c.trial_id == trial_id)
    position = max((await locked.connection.execute(query)).scalars(), default=-1) + 1
    assert row.request_id is not None
    task = trial_task_id(locked.experiment.id, row.request_id, position)
    link = NewTrialTask(trial_id, position, task)
    workspace_id = await locked.workspace_id()
    await insert_trial_tasks(locked.connection, _origin(locked), [link], workspace_id=workspace_id, now=locked.now)
    _announce_task(locked, task)
    locked.set_task(row, task)


def _announce_task(locked: LockedExperiment, task: str) -> None:
    locked.out.announce(TaskChanged(task_id=task, task_type="TRIAL", what="created"))


async def _warm_start(locked: LockedExperiment) -> str | None:
    """The checkpoint that every trial of the experiment starts from, if any. Raises SearchFailedError when it is gone.

    Whoever stored the configuration has chosen the checkpoint of a source trial, once, so that later trials start from
    the same as the first; only where that was left out it is chosen here. Source: docs/reference/experiments.md 1.7.
    """
    searcher = part(locked.experiment.config, "searcher")
    source, chosen = count_in(searcher, "source_trial_id"), text_in(searcher, "source_checkpoint_uuid")
    if chosen or source is None:
        return chosen or None
    query = (
        select(checkpoints.c.uuid)
        .where(checkpoints.c.trial_id == source, checkpoints.c.state == "COMPLETED")
        .order_by(checkpoints.c.steps_completed.desc().nulls_last(), checkpoints.c.report_time.desc())
        .limit(1)
    )
    found: str | None = (await locked.connection.execute(query)).scalar()
    if found is None:
        raise SearchFailedError(f"no checkpoint found for source trial {source}")
    return found
