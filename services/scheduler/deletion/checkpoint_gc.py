"""Checkpoint GC: tasks that delete files of checkpoints, by the retention policy or because somebody asked.

Source: docs/reference/experiments.md 10.4; docs/reference/harness-protocol.md 15.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import delete, insert, select, update

from libs.checkpoints.checkpoint_retention import Candidate, checkpoints_to_delete, policy_of
from libs.config.stored import part
from libs.config.task_container_defaults import PREEMPTION_TIMEOUT_S
from libs.db.any_of import any_of
from libs.db.checkpoints.gc_candidates import gc_candidates
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.db.tables.checkpoints import checkpoint_gc_requests as requests
from libs.db.tables.checkpoints import storage_backends
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import jobs, tasks
from libs.events.changes import JobChanged, TaskChanged
from libs.ids import allocation_id, new_uuid
from libs.states.experiment import ExperimentState
from libs.tasks.checkpoint_gc import EVERYTHING, checkpoint_gc_task, is_storage
from libs.tasks.stored import to_document
from libs.tasks.users_pods import from_column
from services.scheduler.transactions.allocation_messages import changed, note
from services.scheduler.transactions.experiment_log import say_in_log
from services.scheduler.transactions.locked_experiment import LockedExperiment
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow

TASK_TYPE: Final = "CHECKPOINT_GC"
_FAILED: Final = "checkpoint GC failed"
CHECKPOINTS_AT_ONCE: Final = 5000
"""Of which one task deletes files; its order names them all, and has to be a message of the bus."""

_REQUESTS: Final = PreparedStatement("""
    SELECT id, storage_id, uuids, globs, delete_tensorboards FROM checkpoint_gc_requests
    WHERE experiment_id = :experiment ORDER BY id
""")


class GcWork(Struct, frozen=True, kw_only=True):
    """What one task does. ``storage_id`` None is the storage in the configuration of the experiment."""

    storage_id: int | None = None
    uuids: tuple[str, ...] = ()
    globs: tuple[str, ...] = EVERYTHING
    delete_tensorboards: bool = False


async def superfluous_checkpoints(locked: LockedExperiment) -> list[Candidate]:
    """Checkpoints that the retention policy of the experiment does not keep."""
    config = locked.experiment.config
    return checkpoints_to_delete(
        await gc_candidates(locked.connection, locked.experiment.id, config), policy_of(config)
    )


async def deletable_checkpoints(locked: LockedExperiment) -> list[Candidate]:
    """All checkpoints of the experiment that have files, and from which no trial started or may yet start."""
    return await gc_candidates(locked.connection, locked.experiment.id, locked.experiment.config)


def deletion_of(doomed: Sequence[Candidate], *, delete_tensorboards: bool) -> list[GcWork]:
    """The work of deleting all files of ``doomed``: one task per storage.

    TensorBoard files lie in the storage of the experiment's configuration, and are deleted by the task for that one.
    """
    by_storage: defaultdict[int | None, list[str]] = defaultdict(list)
    if delete_tensorboards:
        by_storage[None] = []
    for candidate in doomed:
        by_storage[candidate.storage_id].append(candidate.uuid)
    return [
        GcWork(storage_id=storage, uuids=tuple(uuids), delete_tensorboards=delete_tensorboards and storage is None)
        for storage, uuids in by_storage.items()
    ]


async def carry_out_requests(locked: LockedExperiment) -> None:
    """Make a task of everything that somebody asked to be deleted; the requests go with the transaction."""
    found = await _REQUESTS.rows(locked.connection, experiment=locked.experiment.id)
    if not found:
        return
    await create_gc_tasks(
        locked,
        [
            GcWork(
                storage_id=row["storage_id"],
                uuids=tuple(row["uuids"]),
                globs=tuple(row["globs"]),
                delete_tensorboards=row["delete_tensorboards"],
            )
            for row in found
        ],
    )
    await locked.connection.execute(delete(requests).where(any_of(requests.c.id, (row["id"] for row in found))))


async def create_gc_tasks(locked: LockedExperiment, works: Sequence[GcWork]) -> list[AllocationRow]:
    """Tasks for ``works``, each with its job and allocation; the allocations go out with ``locked``.

    Where there is no storage (any more) there is nothing to delete, and no task.
    """
    if not works:
        return []
    own = part(locked.experiment.config, "checkpoint_storage")
    configs = await _storages(locked.connection, [work.storage_id for work in works if work.storage_id is not None])
    workspace_id = await locked.workspace_id()
    return [
        await _create(locked, portion, storage=storage, workspace_id=workspace_id)
        for work in works
        if is_storage(storage := configs.get(work.storage_id) or own) and (work.uuids or work.delete_tensorboards)
        for portion in _portions(work)
    ]


def failure_of_gc(task: str, exit_reason: str | None) -> str:
    """What the owner of the experiment is told when such a task did not end well."""
    return f"{_FAILED}: {exit_reason or 'nobody knows why'} (its log: det task logs {task})"


async def record_outcome(
    connection: Connection, experiment_id: int, row: AllocationRow, *, now: datetime, out: OutboxBuffer
) -> None:
    """Tell the owner of the experiment that ``row`` could not delete its files, or no more that others could not.

    The reason of an experiment that is being deleted is that of its deletion.
    """
    is_deleted = experiments.c.state.in_((ExperimentState.DELETING, ExperimentState.DELETE_FAILED))
    mine = update(experiments).where(experiments.c.id == experiment_id, ~is_deleted)
    if row.stopped_early:
        await connection.execute(mine.where(experiments.c.error.startswith(_FAILED)).values(error=None))
        return
    failure = failure_of_gc(row.task_id, row.exit_reason)
    await say_in_log(connection, experiment_id, failure, now=now, out=out)
    await connection.execute(mine.values(error=failure))


def _portions(work: GcWork) -> Iterator[GcWork]:
    for start in range(0, len(work.uuids) or 1, CHECKPOINTS_AT_ONCE):
        yield msgspec.structs.replace(
            work,
            uuids=work.uuids[start : start + CHECKPOINTS_AT_ONCE],
            delete_tensorboards=work.delete_tensorboards and not start,
        )


async def _storages(connection: Connection, ids: Sequence[int]) -> dict[int | None, dict[str, Any]]:
    query = select(storage_backends.c.id, storage_backends.c.config).where(any_of(storage_backends.c.id, ids))
    return {row.id: row.config for row in await connection.execute(query)}


async def _create(
    locked: LockedExperiment, work: GcWork, *, storage: Mapping[str, Any], workspace_id: int
) -> AllocationRow:
    experiment = locked.experiment
    task = f"{experiment.id}.{new_uuid()}"
    allocation = allocation_id(task, 1)
    job = f"checkpoint_gc-{allocation}"
    pool = locked.cluster.resource_manager.default_aux_resource_pool or locked.cluster.representative_pool
    spec = checkpoint_gc_task(
        experiment_id=experiment.id,
        config=experiment.config,
        storage=storage,
        checkpoints=work.uuids,
        globs=work.globs,
        delete_tensorboards=work.delete_tensorboards,
        defaults=locked.cluster.defaults_of(pool),
        users_pod=from_column(experiment.users_pod),
    )
    common = {"job_id": job, "owner_id": experiment.owner_id, "workspace_id": workspace_id}
    await locked.connection.execute(
        insert(jobs).values(job_type=TASK_TYPE, pool=pool, submitted_at=locked.now, **common),
    )
    await locked.connection.execute(
        insert(tasks).values(
            task_id=task,
            task_type=TASK_TYPE,
            experiment_id=experiment.id,
            start_time=locked.now,
            spec=to_document(spec),
            **common,
        )
    )
    row = AllocationRow(
        allocation_id=allocation,
        task_id=task,
        job_id=job,
        name=f"Checkpoint GC (Experiment {experiment.id})",
        pool=pool,
        slots=0,
        num_pods=1,
        preemptible=False,
        preemption_timeout_s=PREEMPTION_TIMEOUT_S,
        state="PENDING",
        requested_at=locked.now,
    )
    locked.requested.append(row)
    locked.out.announce(JobChanged(job_id=job, what="submitted", pool=pool))
    locked.out.announce(TaskChanged(task_id=task, task_type=TASK_TYPE, what="created"))
    note(row, f"Scheduling {row.name} (id: {allocation})", now=locked.now, out=locked.out)
    locked.out.announce(changed(row, "requested"))
    return row
