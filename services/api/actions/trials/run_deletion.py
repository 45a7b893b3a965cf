"""Deletes single runs of an experiment, which stays: their rows at once, their files by a task, the rest by the
scheduler.

Checkpoints from which others started, or may yet start, and those that are versions of models keep their files.
Source: docs/reference/experiments.md 13.6 (delete).
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.checkpoints.gc_candidates import gc_candidates
from libs.db.levels.deletion import delete_some_levels
from libs.db.outbox import announce
from libs.db.tables.checkpoints import checkpoint_gc_requests, trial_sources
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations, tasks
from libs.db.tables.trials import deleted_trials, trial_tasks, trials
from libs.db.tables.users import allocation_sessions, user_sessions
from libs.errors import FailedPrecondition
from libs.events.changes import TrialChanged
from libs.states.trial import TERMINAL
from libs.tasks.checkpoint_gc import EVERYTHING
from services.api.actions.experiment_lock import change, lock_experiment
from services.api.actions.trials.run_actions import Action


def deletion_at(now: datetime) -> Action:
    """The deletion of a run as an action on each of many. It raises FailedPrecondition while the run has not ended."""

    async def delete_run(connection: AsyncConnection, run: Row[Any]) -> bool:
        if run.state not in TERMINAL:
            raise FailedPrecondition("Run is not in a terminal state.")
        # What charts keep would go with its row, and may be gigabytes.
        if await delete_some_levels(connection, [run.id]):
            return True
        locked = await lock_experiment(connection, run.experiment_id)
        await _ask_for_files(connection, locked, run.id)
        # What it was is read from its rows, which are gone afterwards.
        await announce(connection, TrialChanged(trial_id=run.id, experiment_id=locked.id, what="deleted"))
        await _delete_rows(connection, run.id, now=now)
        await _choose_best_trial(connection, locked, run.id)
        await change(connection, locked, "edited")
        return False

    return delete_run


async def _ask_for_files(connection: AsyncConnection, experiment: Row[Any], run_id: int) -> None:
    by_storage: defaultdict[int | None, list[str]] = defaultdict(list)
    for candidate in await gc_candidates(connection, experiment.id, experiment.config, trial_id=run_id):
        by_storage[candidate.storage_id].append(candidate.uuid)
    for storage_id, uuids in by_storage.items():
        wanted = {"experiment_id": experiment.id, "storage_id": storage_id, "uuids": uuids, "globs": list(EVERYTHING)}
        await connection.execute(insert(checkpoint_gc_requests).values(wanted))


async def _delete_rows(connection: AsyncConnection, run_id: int, *, now: datetime) -> None:
    """All that anybody sees of it; metrics and lines, which may be many, are noted for the scheduler."""
    task_ids = list(await connection.scalars(select(trial_tasks.c.task_id).where(trial_tasks.c.trial_id == run_id)))
    own_allocations = select(allocations.c.allocation_id).where(any_of(allocations.c.task_id, task_ids))
    for statement in (
        insert(deleted_trials).values(trial_id=run_id, task_ids=task_ids, deleted_at=now),
        delete(trial_sources).where(trial_sources.c.trial_id == run_id),
        delete(allocation_sessions).where(allocation_sessions.c.allocation_id.in_(own_allocations)),
        delete(user_sessions).where(user_sessions.c.allocation_id.in_(own_allocations)),
        delete(tasks).where(any_of(tasks.c.task_id, task_ids)),
        delete(trials).where(trials.c.id == run_id),
    ):
        await connection.execute(statement)


async def _choose_best_trial(connection: AsyncConnection, experiment: Row[Any], run_id: int) -> None:
    if experiment.best_trial_id != run_id:
        return
    best = (
        select(trials.c.id)
        .where(trials.c.experiment_id == experiment.id, trials.c.searcher_metric_signed.is_not(None))
        .order_by(trials.c.searcher_metric_signed, trials.c.id)
        .limit(1)
        .scalar_subquery()
    )
    await connection.execute(update(experiments).where(experiments.c.id == experiment.id).values(best_trial_id=best))
