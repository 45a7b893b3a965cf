"""Lets an experiment that has ended go on: trials that did not complete run again, from their latest checkpoints.

The search begins anew with the same seed, and so asks for the trials that there are: the scheduler closes those that
completed and runs the others again, in new tasks. A ``single`` experiment has nothing to search for; its one trial goes
on even when it had completed, with the changes that its owner asks for.
Source: docs/reference/experiments.md 7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import structs
from sqlalchemy import Row, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.time_limits import limit_in_pool
from libs.config import (
    apply_invariants,
    check_stored,
    check_unmasked,
    continue_config,
    merge,
    parse_experiment_config,
)
from libs.config.differences import overlaid
from libs.config.stored import count_in, part, text_in
from libs.db.jobs.pool_offers import PoolOffer, store_offers
from libs.db.new_trials import BEGUN_AGAIN, NewTrialTask, Origin, insert_trial_tasks
from libs.db.outbox import announce
from libs.db.tables.experiments import searcher_events, searcher_snapshots
from libs.db.tables.tasks import jobs, pool_offers
from libs.db.tables.trials import trial_tasks, trials
from libs.errors import FailedPrecondition, InvalidRequest
from libs.events.changes import JobChanged, TaskChanged, TrialChanged
from libs.ids import trial_task_id
from libs.searchers.search_start import resume_single
from libs.states.experiment import TERMINAL, ExperimentState, Trigger, step
from libs.states.trial import TrialState
from libs.tasks.users_pods import continued, to_column
from services.api.actions.experiment_lock import change, lock_experiment
from services.api.actions.experiments.pool_choice import choose_pool
from services.api.actions.experiments.project import ProjectRef, load_project
from services.api.actions.experiments.warm_start import pin_warm_start
from services.api.actions.pod_rules import check_pods_of_users
from services.api.actions.pool_offers import OfferedTask, changes_of_experiment, completed, offers_of
from services.api.actions.possible_pools import check_slots
from services.api.app import App
from services.api.queries.workspaces.config_policies import policies_in
from services.api.wire.experiments.experiments import LaunchWarning

Object = dict[str, Any]

CONTINUABLE: Final = frozenset({"single", "grid", "random"})
_NOT_SINGLE: Final = "override config is provided and experiment is not single searcher"
_DECIDES_TRIALS: Final = frozenset({"searcher", "hyperparameters", "reproducibility"})
_SOURCES: Final = ("source_trial_id", "source_checkpoint_uuid")


def parse_override(text: str) -> Object:
    """What is to change in the configuration, in normal form; empty text is nothing. Raises InvalidRequest."""
    if not text.strip():
        return {}
    override = parse_experiment_config(text)
    check_unmasked(override)
    for key in ("project", "workspace"):
        if override.get(key):
            raise InvalidRequest(f"override config must not set {key}; move the experiment instead")
    return override


async def continue_experiment(
    connection: AsyncConnection, app: App, experiment_id: int, override: Object, *, now: datetime
) -> list[LaunchWarning]:
    """Let it run again, with ``override`` (``parse_override``) over its configuration.

    Raises NotFound, InvalidRequest, and FailedPrecondition when it has not ended or has nothing left to do.
    """
    row = await lock_experiment(connection, experiment_id)
    stored = row.config
    name = text_in(part(stored, "searcher"), "name")
    _check_searcher(name or text_in(part(override, "searcher"), "name"), override)
    state = await _state_after(connection, row, is_single=name in ("", "single"))
    check_stored(experiment_id, stored)
    project = await load_project(connection, row.project_id)
    if row.archived or project.archived or project.state:
        raise FailedPrecondition(f"experiment ({experiment_id}) is archived and cannot be continued")
    policies = await policies_in(
        connection,
        project.workspace_id,
        "EXPERIMENT",
        larger_priority_first=app.cluster.resource_manager.larger_priority_first,
    )
    invariants = _that_may_change(name, policies.invariants)
    fixed = await asyncio.to_thread(apply_invariants, merge(override, stored), invariants)
    pool, _ = choose_pool(app, fixed, project)
    config = await asyncio.to_thread(continue_config, override, stored, resource_pool=pool, invariants=invariants)
    task = OfferedTask(
        pool=pool,
        slots=config["resources"]["slots_per_trial"],
        single_pod=bool(config["resources"].get("is_single_node")),
        time_limit_s=(apply_invariants(override, invariants).get("resources") or {}).get("time_limit"),
        workspace_id=project.workspace_id,
        unavailable_pools=project.unavailable_pools,
    )
    config["resources"] = completed(app, task, config["resources"])
    policies.check_launch(config["resources"])
    users_pod = await check_pods_of_users(
        connection,
        app.cluster,
        override,
        *policies.of_workspace,
        workspace_id=project.workspace_id,
        pool=pool,
        gpu=config["resources"]["slots_per_trial"] > 0,
    )
    if any((override.get("searcher") or {}).get(key) is not None for key in _SOURCES):
        await pin_warm_start(connection, config)
    await _queue_anew(connection, row, config, project, pool=pool, now=now)
    offers = await _offers_anew(connection, app, row.job_id, task, config, stored=stored)
    warnings = list(check_slots(app, task, offers).warnings)
    await store_offers(connection, row.job_id, offers, anew=True)
    for table in (searcher_snapshots, searcher_events):
        await connection.execute(delete(table).where(table.c.experiment_id == experiment_id))
    await connection.execute(update(trials).where(trials.c.experiment_id == experiment_id).values(restarts=0))
    if config["searcher"]["name"] == "single":
        await _resume_trial(connection, row, config, override, project, now=now)
    await change(
        connection,
        row,
        "state",
        state=state.value,
        progress=0.0,
        end_time=None,
        error=None,
        config=config,
        users_pod=to_column(continued(row.users_pod, users_pod)),
    )
    return warnings


def _check_searcher(name: str, override: Object) -> None:
    """Raises InvalidRequest unless experiments with this search go on with these changes.

    name  of the search; empty when neither what is stored nor the override says it
    """
    if not name:
        raise InvalidRequest(
            "searcher.name is neither in the stored configuration nor in the override: give it in the override"
            " configuration"
        )
    if name not in CONTINUABLE:
        raise InvalidRequest(f"Unsupported searcher type provided: '{name}'")
    after = (override.get("searcher") or {}).get("name") or name
    if override and (name != "single" or after != "single"):
        shown = name if name != "single" else after
        raise InvalidRequest(f"{_NOT_SINGLE}, got '{shown}' instead")


def _that_may_change(name: str, invariants: Sequence[Object]) -> list[Object]:
    """Of invariants what an experiment that goes on can take over: the trials of a search are there already."""
    if name in ("", "single"):
        return list(invariants)
    return [{key: value for key, value in one.items() if key not in _DECIDES_TRIALS} for one in invariants]


async def _state_after(connection: AsyncConnection, row: Row[Any], *, is_single: bool) -> ExperimentState:
    """ACTIVE. Raises FailedPrecondition when it cannot be continued."""
    if row.unmanaged:
        raise FailedPrecondition("unmanaged experiments cannot be continued: whoever started them does it")
    state = step(ExperimentState(row.state), Trigger.CONTINUE)
    if row.state not in TERMINAL or state is None:
        raise FailedPrecondition(f"experiment in non terminal state '{row.state}', try again later")
    if not is_single and row.state == ExperimentState.COMPLETED:
        unfinished = select(trials.c.id).where(
            trials.c.experiment_id == row.id, trials.c.state != TrialState.COMPLETED.value
        )
        if (await connection.execute(unfinished.limit(1))).first() is None:
            raise FailedPrecondition("experiment has been completed, cannot continue this experiment")
    active = step(state, Trigger.ACTIVATE)
    assert active is not None, "whatever is paused can be activated"
    return active


async def _queue_anew(
    connection: AsyncConnection, row: Row[Any], config: Object, project: ProjectRef, *, pool: str, now: datetime
) -> None:
    """Its job lines up again, behind those that wait by now."""
    resources = config["resources"]
    place = {
        "pool": pool,
        "priority": resources["priority"],
        "weight": resources["weight"],
        "max_slots": resources["max_slots"],
        "submitted_at": now,
        "queue_position": None,
        "workspace_id": project.workspace_id,
    }
    of_job = {"job_id": row.job_id, "job_type": "EXPERIMENT", "owner_id": row.owner_id}
    await connection.execute(
        # Of an imported experiment that had ended, no job was taken over.
        upsert(jobs).values(**of_job, **place).on_conflict_do_update(index_elements=["job_id"], set_=place)
    )
    await announce(
        connection,
        JobChanged(job_id=row.job_id, what="submitted", pool=pool, priority=place["priority"], weight=place["weight"]),
    )


async def _offers_anew(
    connection: AsyncConnection, app: App, job_id: str, task: OfferedTask, config: Object, *, stored: Object
) -> tuple[PoolOffer, ...]:
    """Those of the configuration. What defaults of pools make of it was found when it was submitted: that stays, as
    the time limits do that nobody changes, and nothing but the limit is different in pools that were named since then.

    task    its time limit is what is asked for now
    stored  the configuration before
    """
    query = select(pool_offers.c.pool, pool_offers.c.changes, pool_offers.c.time_limit_s)
    rows = (await connection.execute(query.where(pool_offers.c.job_id == job_id))).all()
    known: dict[str, Object] = {row.pool: row.changes for row in rows}
    is_named = task.time_limit_s is not None
    limits = {} if is_named else {row.pool: row.time_limit_s for row in rows}

    async def in_pool(name: str) -> Object:
        return overlaid(config, known.get(name, {}))

    if not is_named:
        task = structs.replace(task, time_limit_s=_asked_before(app, stored, [row.time_limit_s for row in rows]))
    found = await offers_of(app, task, config["resources"], own=config, in_pool=in_pool, changes=changes_of_experiment)
    return tuple(
        structs.replace(offer, time_limit_s=limits.get(offer.pool, offer.time_limit_s)) if offer.rank else offer
        for offer in found
    )


def _asked_before(app: App, stored: Object, in_pools: Sequence[int | None]) -> int | None:
    """The time limit that an experiment came with; None where it got that of its pool, which is stored alike.

    in_pools  its limits in the pools that it has named: all the same when it came with one
    """
    resources = part(stored, "resources")
    limit = count_in(resources, "time_limit")
    of_pool = limit_in_pool(app.cluster, text_in(resources, "resource_pool"), None)
    return None if limit == of_pool or any(other != limit for other in in_pools) else limit


async def _resume_trial(
    connection: AsyncConnection, row: Row[Any], config: Object, override: Object, project: ProjectRef, *, now: datetime
) -> None:
    """The trial of a ``single`` experiment runs again, in a task of its own; without one, the search makes it."""
    first = select(trials).where(trials.c.experiment_id == row.id).order_by(trials.c.id).limit(1).with_for_update()
    trial = (await connection.execute(first)).one_or_none()
    if trial is None or trial.request_id is None:
        return
    search = await asyncio.to_thread(resume_single, config, trial.request_id)
    values: dict[str, Any] = {**BEGUN_AGAIN, "state": TrialState.ACTIVE.value}
    if override.get("hyperparameters"):
        values["hparams"] = search.creates[0].hparams
    if config["searcher"].get("source_checkpoint_uuid") is not None:
        values["warm_start_checkpoint_uuid"] = config["searcher"]["source_checkpoint_uuid"]
    await connection.execute(update(trials).where(trials.c.id == trial.id).values(**values))
    await connection.execute(insert(searcher_snapshots).values(experiment_id=row.id, snapshot=search.snapshot))
    count = select(func.coalesce(func.max(trial_tasks.c.position) + 1, 0)).where(trial_tasks.c.trial_id == trial.id)
    position: int = (await connection.execute(count)).scalar_one()
    link = NewTrialTask(trial.id, position, trial_task_id(row.id, trial.request_id, position))
    origin = Origin(id=row.id, project_id=row.project_id, job_id=row.job_id, owner_id=row.owner_id, config=config)
    await insert_trial_tasks(connection, origin, [link], workspace_id=project.workspace_id, now=now)
    await announce(
        connection,
        TaskChanged(task_id=link.task_id, task_type="TRIAL", what="created"),
        TrialChanged(
            trial_id=trial.id,
            experiment_id=row.id,
            what="state",
            state=TrialState.ACTIVE.value,
            task_id=link.task_id,
        ),
    )
