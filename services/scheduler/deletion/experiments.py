"""Deletes an experiment: its files first, then its logs, then its rows; each step may be repeated after a crash.

Source: docs/reference/experiments.md 6 (delete procedure). A deletion that fails says why, and may be asked for again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import asyncpg
import structlog
from sqlalchemy import delete, exists, func, select, union
from sqlalchemy.exc import DBAPIError

from libs.capture.lines import STREAMS_PER_POD
from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.any_of import any_of
from libs.db.checkpoints.registered_checkpoints import registered_in
from libs.db.engine import Connection, Database
from libs.db.failures import driver_error, is_connection_failure
from libs.db.outbox import announce
from libs.db.tables.checkpoints import checkpoints, trial_sources
from libs.db.tables.experiments import experiments
from libs.db.tables.logs import log_streams
from libs.db.tables.metrics import metrics
from libs.db.tables.tasks import allocations, jobs, tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.db.tables.users import allocation_sessions, user_sessions
from libs.db.tables.workspaces import projects, workspaces
from libs.db.transactions import in_transaction
from libs.events.changes import WorkspaceChanged
from libs.states.experiment import ExperimentState, Trigger, step
from services.scheduler.deletion.checkpoint_gc import create_gc_tasks, deletable_checkpoints, deletion_of, failure_of_gc
from services.scheduler.deletion.many_rows import delete_lines, delete_metrics
from services.scheduler.transactions.experiment_log import say_in_log
from services.scheduler.transactions.locked_experiment import LockedExperiment, experiment_changed, lock_experiment
from services.scheduler.workqueue.result import ReconcileResult

log = structlog.get_logger()

WITHOUT_FILES: Final = (
    "an administrator can delete it and leave its files: det dev curl '/api/v1/experiments/{id}?force=true' -X DELETE"
)
_REQUEUE_AFTER_S: Final = 0.1


class ExperimentDeletion:
    def __init__(self, *, db: Database, clock: Clock, cluster: ClusterConfig, log_wait: timedelta) -> None:
        """log_wait  longest wait for the last log lines, which would otherwise be stored after the others are gone"""
        self._db = db
        self._clock = clock
        self._cluster = cluster
        self._log_wait = log_wait

    async def reconcile(self, experiment_id: int) -> ReconcileResult:
        """Carry the deletion as far as it can go now; nothing happens to an experiment that is not DELETING."""
        try:
            result, files_are_gone = await in_transaction(self._db, lambda c: self._delete_files(c, experiment_id))
            if files_are_gone:
                await self._delete_rows(experiment_id)
            return result
        except (DBAPIError, asyncpg.PostgresError) as error:
            if is_connection_failure(error):
                raise
            log.exception("deletion.failed", experiment=experiment_id)
            reason = f"cannot delete the rows of experiment {experiment_id}: {driver_error(error)}"
        await in_transaction(self._db, lambda c: self._fail(c, experiment_id, reason))
        return ReconcileResult()

    async def _delete_files(self, connection: Connection, experiment_id: int) -> tuple[ReconcileResult, bool]:
        """Start the GC tasks or look how they did; True when all files are gone."""
        locked = await self._lock(connection, experiment_id)
        if locked is None:
            return ReconcileResult(), False
        if locked.experiment.deletion_tasks is None:
            return await _begin(locked)
        if await self._has_live_allocations(connection, experiment_id):
            return ReconcileResult(), False
        if await self._lines_are_to_come(connection, locked.experiment.deletion_tasks):
            return ReconcileResult(requeue_after_s=_REQUEUE_AFTER_S), False
        failure = await self._gc_failure(connection, locked.experiment.deletion_tasks)
        if failure is None:
            return ReconcileResult(), True
        await _mark_failed(locked, f"{failure}; {WITHOUT_FILES.format(id=experiment_id)}")
        return ReconcileResult(), False

    async def _lock(self, connection: Connection, experiment_id: int) -> LockedExperiment | None:
        locked = await lock_experiment(connection, experiment_id, cluster=self._cluster, now=self._clock.now())
        return locked if locked is not None and locked.state == ExperimentState.DELETING else None

    async def _has_live_allocations(self, connection: Connection, experiment_id: int) -> bool:
        query = (
            select(allocations.c.allocation_id)
            .join(tasks, tasks.c.task_id == allocations.c.task_id)
            .where(tasks.c.experiment_id == experiment_id, allocations.c.released_at.is_(None))
            .limit(1)
        )
        return (await connection.execute(query)).first() is not None

    async def _lines_are_to_come(self, connection: Connection, task_ids: list[str]) -> bool:
        """Whether the log of a GC task is incomplete, and the wait for it is not over."""
        recent = allocations.c.end_time > self._clock.now() - self._log_wait
        pods = select(allocations.c.pods).where(any_of(allocations.c.task_id, task_ids), recent)
        ended = [
            sum(pod.get("exit_code") is not None for pod in row) for row in (await connection.execute(pods)).scalars()
        ]
        # Those of its pods, and the one in which services speak about it.
        expected = sum(count * STREAMS_PER_POD + 1 for count in ended if count)
        sealed = select(func.count(log_streams.c.sealed_at)).where(any_of(log_streams.c.task_id, task_ids))
        return (await connection.execute(sealed)).scalar_one() < expected

    async def _gc_failure(self, connection: Connection, task_ids: list[str]) -> str | None:
        query = (
            select(allocations.c.task_id, allocations.c.exit_reason)
            .where(any_of(allocations.c.task_id, task_ids), ~allocations.c.stopped_early)
            .order_by(allocations.c.task_id)
        )
        failed = (await connection.execute(query)).first()
        return None if failed is None else failure_of_gc(failed.task_id, failed.exit_reason)

    async def _fail(self, connection: Connection, experiment_id: int, reason: str) -> None:
        locked = await self._lock(connection, experiment_id)
        if locked is not None:
            await _mark_failed(locked, reason)

    async def _delete_rows(self, experiment_id: int) -> None:
        async with self._db.read() as connection:
            task_ids = await _task_ids(connection, experiment_id)
            of_experiment = select(trials.c.id).where(trials.c.experiment_id == experiment_id)
            trial_ids = list((await connection.execute(of_experiment)).scalars())
        await delete_lines(self._db, task_ids)
        await delete_metrics(self._db, trial_ids)
        await in_transaction(self._db, lambda c: self._delete_experiment(c, experiment_id))

    async def _delete_experiment(self, connection: Connection, experiment_id: int) -> None:
        locked = await self._lock(connection, experiment_id)
        if locked is None:
            return
        task_ids = await _task_ids(connection, experiment_id)
        of_experiment = select(trials.c.id).where(trials.c.experiment_id == experiment_id)
        job_ids = select(tasks.c.job_id).where(any_of(tasks.c.task_id, task_ids), tasks.c.job_id.is_not(None))
        own_jobs = set((await connection.execute(job_ids)).scalars()) | {locked.experiment.job_id}
        own_allocations = select(allocations.c.allocation_id).where(any_of(allocations.c.task_id, task_ids))
        deleted_checkpoints = (checkpoints.c.experiment_id == experiment_id) & (checkpoints.c.state == "DELETED")
        # What it was is read from its rows, which are gone afterwards.
        await announce(connection, experiment_changed(locked.experiment, "deleted"))
        for statement in (
            delete(log_streams).where(any_of(log_streams.c.task_id, task_ids)),
            delete(trial_sources).where(trial_sources.c.trial_id.in_(of_experiment)),
            delete(checkpoints).where(deleted_checkpoints),
            delete(allocation_sessions).where(allocation_sessions.c.allocation_id.in_(own_allocations)),
            delete(user_sessions).where(user_sessions.c.allocation_id.in_(own_allocations)),
            delete(tasks).where(any_of(tasks.c.task_id, task_ids)),
            delete(jobs).where(any_of(jobs.c.job_id, own_jobs)),
            delete(experiments).where(experiments.c.id == experiment_id),
        ):
            await connection.execute(statement)
        log.info("experiment.deleted", experiment=experiment_id)


async def _begin(locked: LockedExperiment) -> tuple[ReconcileResult, bool]:
    """Start the GC tasks; True when there is nothing for any to do."""
    # Who deletes a project or a workspace was not asked about each of its experiments.
    if (reason := await registered_in(locked.connection, locked.experiment.id)) is not None:
        await _mark_failed(locked, reason)
        return ReconcileResult(), False
    doomed = await deletable_checkpoints(locked)
    has_tensorboards = await _may_have_tensorboards(locked.connection, locked.experiment.id)
    rows = await create_gc_tasks(locked, deletion_of(doomed, delete_tensorboards=has_tensorboards))
    locked.experiment.deletion_tasks = [row.task_id for row in rows]
    await locked.write()
    return ReconcileResult(pools=frozenset(row.pool for row in rows)), not rows


async def _task_ids(connection: Connection, experiment_id: int) -> list[str]:
    query = union(
        select(tasks.c.task_id).where(tasks.c.experiment_id == experiment_id),
        select(trial_tasks.c.task_id)
        .join(trials, trials.c.id == trial_tasks.c.trial_id)
        .where(trials.c.experiment_id == experiment_id),
    )
    return list((await connection.execute(query)).scalars())


async def _may_have_tensorboards(connection: Connection, experiment_id: int) -> bool:
    """Whether some trial wrote TensorBoard files, as far as can be known here.

    The harness writes them from what is reported, and uploads those of the user's own with reports and checkpoints.
    """
    reported = exists().where(metrics.c.trial_id == trials.c.id, trials.c.experiment_id == experiment_id)
    saved = exists().where(checkpoints.c.experiment_id == experiment_id)
    return bool((await connection.execute(select(reported | saved))).scalar_one())


async def _mark_failed(locked: LockedExperiment, reason: str) -> None:
    """The deletion of the experiment has failed, and with it that of the project and workspace that it is part of."""
    failed = step(locked.state, Trigger.DELETE_FAILED)
    assert failed is not None, "only deletions fail"
    locked.experiment.state = failed
    locked.experiment.error = reason
    locked.experiment.deletion_tasks = None
    text = f"the experiment was not deleted: {reason}"
    await say_in_log(locked.connection, locked.experiment.id, text, now=locked.now, out=locked.out)
    await locked.write()
    deleting = (projects.c.id == locked.experiment.project_id) & (projects.c.state == "DELETING")
    message = {"state": "DELETE_FAILED", "error_message": f"experiment {locked.experiment.id}: {reason}"}
    found = await locked.connection.execute(
        projects.update().where(deleting).values(message).returning(projects.c.id, projects.c.workspace_id)
    )
    for project in found:
        above = (workspaces.c.id == project.workspace_id) & (workspaces.c.state == "DELETING")
        await locked.connection.execute(workspaces.update().where(above).values(message))
        await announce(
            locked.connection,
            WorkspaceChanged(workspace_id=project.workspace_id, what="project", project_id=project.id),
        )
