"""Trials that a search asks for: inserted once, however often it asks, and run again when a search begins again.

A search that starts from scratch with the same seed asks for the same request ids. Then a trial that completed is
closed at once, and any other one continues where it was, in a new task. Source: spec/experiments.md 0, 4 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select, update

from libs.db.any_of import any_of
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.db.tables.workspaces import projects
from libs.events.changes import TaskChanged
from libs.ids import trial_task_id
from libs.searchers.actions import Create
from libs.states.experiment import ExperimentState
from libs.states.trial import TrialState
from services.scheduler.engine.rows import TrialRow
from services.scheduler.engine.run import Run
from services.scheduler.engine.search import Search, SearchFailedError


async def create_trials(run: Run, search: Search, wanted: Sequence[Create]) -> None:
    """See to it that each wanted trial exists, and tell the search."""
    ids = [create.request_id for create in wanted]
    query = select(trials.c.request_id, trials.c.id, trials.c.state).where(
        trials.c.experiment_id == run.experiment.id, any_of(trials.c.request_id, ids)
    )
    known = {found.request_id: found for found in await run.connection.execute(query)}
    await _insert(run, [create for create in wanted if create.request_id not in known])
    for create in wanted:
        search.created(create.request_id)
        found = known.get(create.request_id)
        if found is None:
            continue
        if found.state == TrialState.COMPLETED:
            search.ended(create.request_id, TrialState.COMPLETED)
        else:
            await _run_again(run, found.id)


def _initial_state(run: Run) -> TrialState:
    return TrialState.ACTIVE if run.state == ExperimentState.ACTIVE else TrialState.PAUSED


async def _insert(run: Run, wanted: Sequence[Create]) -> None:
    if not wanted:
        return
    experiment = run.experiment
    retention = experiment.config.get("retention_policy") or {}
    warm_start = await _warm_start(run)
    counter = (
        update(projects)
        .where(projects.c.id == experiment.project_id)
        .values(max_local_id=projects.c.max_local_id + len(wanted))
        .returning(projects.c.max_local_id, projects.c.workspace_id)
    )
    last, workspace_id = (await run.connection.execute(counter)).one()
    values = [
        {
            "experiment_id": experiment.id,
            "project_id": experiment.project_id,
            "local_id": last - len(wanted) + number,
            "request_id": create.request_id,
            "seed": create.trial_seed,
            "hparams": create.hparams,
            "state": _initial_state(run),
            "start_time": run.now,
            "warm_start_checkpoint_uuid": warm_start,
            "log_retention_days": retention.get("log_retention_days"),
        }
        for number, create in enumerate(wanted, start=1)
    ]
    statement = insert(trials).returning(trials.c.id, trials.c.request_id, sort_by_parameter_order=True)
    returned = await run.connection.execute(statement, values)
    id_by_request = {found.request_id: found.id for found in returned}
    for create in wanted:
        row = _fresh(run, id_by_request[create.request_id], create, warm_start)
        run.add(row, trial_task_id(experiment.id, create.request_id))
    if experiment.config["searcher"]["name"] == "single":
        experiment.best_trial_id = id_by_request[wanted[0].request_id]
    await _insert_tasks(
        run,
        [(id_by_request[create.request_id], 0, trial_task_id(experiment.id, create.request_id)) for create in wanted],
        workspace_id,
    )


def _fresh(run: Run, trial_id: int, create: Create, warm_start: str | None) -> TrialRow:
    return TrialRow(
        id=trial_id,
        experiment_id=run.experiment.id,
        request_id=create.request_id,
        seed=create.trial_seed,
        hparams=create.hparams,
        state=_initial_state(run),
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
    )


async def _run_again(run: Run, trial_id: int) -> None:
    """Continue a trial of an earlier search of the same experiment, in a task of its own."""
    row = run.trial(trial_id) or await run.lock_trial(trial_id)
    if run.open_allocation(row) is not None:
        return  # it runs, and will go on doing so
    row.state = _initial_state(run)
    row.restarts = 0
    row.end_time = None
    row.stopped_by_searcher = False
    row.early_exit_reason = None
    row.early_exit_deadline = None
    row.transient_ends = 0
    row.not_before = None
    row.error = None
    query = select(trial_tasks.c.position).where(trial_tasks.c.trial_id == trial_id)
    position = max((await run.connection.execute(query)).scalars(), default=-1) + 1
    assert row.request_id is not None
    task = trial_task_id(run.experiment.id, row.request_id, position)
    await _insert_tasks(run, [(trial_id, position, task)], await run.workspace_id())
    run.set_task(row, task)


async def _insert_tasks(run: Run, links: Sequence[tuple[int, int, str]], workspace_id: int) -> None:
    """Tasks of trials; each link is trial id, position among the tasks of the trial, task id."""
    rows: list[dict[str, Any]] = [
        {
            "task_id": task,
            "task_type": "TRIAL",
            "job_id": run.experiment.job_id,
            "experiment_id": run.experiment.id,
            "owner_id": run.experiment.owner_id,
            "workspace_id": workspace_id,
            "start_time": run.now,
        }
        for _, _, task in links
    ]
    await run.connection.execute(insert(tasks), rows)
    await run.connection.execute(
        insert(trial_tasks),
        [{"trial_id": trial, "position": position, "task_id": task} for trial, position, task in links],
    )
    for _, _, task in links:
        run.out.announce(TaskChanged(task_id=task, task_type="TRIAL", what="created"))


async def _warm_start(run: Run) -> str | None:
    """The checkpoint that every trial of the experiment starts from, if any. Raises SearchFailedError when it is gone.

    Whoever stored the configuration has chosen the checkpoint of a source trial, once, so that later trials start from
    the same as the first; only where that was left out it is chosen here. Source: spec/experiments.md 1.7.
    """
    searcher = run.experiment.config["searcher"]
    source: int | None = searcher.get("source_trial_id")
    chosen: str | None = searcher.get("source_checkpoint_uuid")
    if chosen or source is None:
        return chosen or None
    query = (
        select(checkpoints.c.uuid)
        .where(checkpoints.c.trial_id == source, checkpoints.c.state == "COMPLETED")
        .order_by(checkpoints.c.steps_completed.desc().nulls_last(), checkpoints.c.report_time.desc())
        .limit(1)
    )
    found: str | None = (await run.connection.execute(query)).scalar()
    if found is None:
        raise SearchFailedError(f"no checkpoint found for source trial {source}")
    return found
