"""Checkpoint GC: which checkpoints may go, and the tasks that delete them, one per storage.

Source: spec/experiments.md 10.4; spec/harness-protocol.md 15.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import and_, insert, select

from libs.checkpoints.retention import Candidate
from libs.cluster.resolution import resolve_pool
from libs.db.engine import Connection
from libs.db.tables.checkpoints import checkpoints, storage_backends
from libs.db.tables.metrics import metrics
from libs.db.tables.tasks import jobs, tasks
from libs.db.tables.trials import trials
from libs.db.tables.workspaces import projects
from libs.events.changes import JobChanged, TaskChanged
from libs.ids import allocation_id, new_uuid
from libs.searchers.reports import read_number
from libs.tasks.checkpoint_gc import checkpoint_gc_task
from libs.tasks.stored import to_document
from services.scheduler.engine.leaving import changed, note
from services.scheduler.engine.rows import AllocationRow, ExperimentRow
from services.scheduler.engine.run import Run

TASK_TYPE = "CHECKPOINT_GC"


async def candidates_of(connection: Connection, experiment: ExperimentRow) -> list[Candidate]:
    """Checkpoints of the experiment that have files and that no trial starts from, with how good they are."""
    searcher = experiment.config["searcher"]
    used = select(trials.c.warm_start_checkpoint_uuid).where(trials.c.warm_start_checkpoint_uuid.is_not(None))
    same_step = and_(
        metrics.c.trial_id == checkpoints.c.trial_id,
        metrics.c.total_batches == checkpoints.c.steps_completed,
        metrics.c.kind == "VALIDATION",
        ~metrics.c.archived,
    )
    query = (
        select(checkpoints, metrics.c.id.label("validation_id"), metrics.c.metrics.label("report"))
        .outerjoin(metrics, same_step)
        .where(
            checkpoints.c.experiment_id == experiment.id,
            checkpoints.c.trial_id.is_not(None),
            checkpoints.c.state.in_(("COMPLETED", "PARTIALLY_DELETED")),
            checkpoints.c.uuid.not_in(used),
        )
        .order_by(checkpoints.c.report_time, checkpoints.c.uuid, metrics.c.id)
    )
    found: dict[str, Candidate] = {}
    for row in (await connection.execute(query)).mappings():
        found.setdefault(row["uuid"], _candidate(row, searcher))
    return list(found.values())


def _candidate(row: Mapping[Any, Any], searcher: Mapping[str, Any]) -> Candidate:
    report = (row["report"] or {}).get("validation_metrics") or {}
    value = read_number(report.get(searcher.get("metric")))
    if value is not None and not math.isnan(value) and not searcher.get("smaller_is_better", True):
        value = -value
    return Candidate(
        uuid=row["uuid"],
        trial_id=row["trial_id"],
        steps_completed=row["steps_completed"] or 0,
        signed=value,
        validation_id=row["validation_id"],
        storage_id=row["storage_id"],
    )


async def create_gc_tasks(run: Run, doomed: Sequence[Candidate], *, delete_tensorboards: bool) -> list[AllocationRow]:
    """Tasks, with their jobs and allocations, that delete the files of ``doomed``; the allocations go out with ``run``.

    TensorBoard files lie in the storage of the experiment's configuration, and are deleted by the task for that one.
    """
    by_storage: defaultdict[int | None, list[str]] = defaultdict(list)
    for candidate in doomed:
        by_storage[candidate.storage_id].append(candidate.uuid)
    own = run.experiment.config.get("checkpoint_storage")
    if delete_tensorboards and own:
        by_storage.setdefault(None, [])
    configs = await _storages(run.connection, [ident for ident in by_storage if ident is not None])
    workspace = select(projects.c.workspace_id).where(projects.c.id == run.experiment.project_id)
    workspace_id = (await run.connection.execute(workspace)).scalar_one()
    return [
        await _create(
            run,
            storage=configs.get(storage_id) or own or {},
            doomed=uuids,
            delete_tensorboards=delete_tensorboards and storage_id is None,
            workspace_id=workspace_id,
        )
        for storage_id, uuids in by_storage.items()
        if configs.get(storage_id) or own
    ]


async def _storages(connection: Connection, ids: Sequence[int]) -> dict[int | None, dict[str, Any]]:
    query = select(storage_backends.c.id, storage_backends.c.config).where(storage_backends.c.id.in_(ids))
    return {row.id: row.config for row in await connection.execute(query)}


async def _create(
    run: Run, *, storage: Mapping[str, Any], doomed: Sequence[str], delete_tensorboards: bool, workspace_id: int
) -> AllocationRow:
    experiment = run.experiment
    task = f"{experiment.id}.{new_uuid()}"
    allocation = allocation_id(task, 1)
    job = f"checkpoint_gc-{allocation}"
    pool = resolve_pool(run.cluster, name="", slots=0)
    spec = checkpoint_gc_task(
        experiment_id=experiment.id,
        config=experiment.config,
        storage=storage,
        checkpoints=doomed,
        delete_tensorboards=delete_tensorboards,
        defaults=run.cluster.defaults_of(pool),
    )
    common = {"job_id": job, "owner_id": experiment.owner_id, "workspace_id": workspace_id}
    await run.connection.execute(
        insert(jobs).values(job_type=TASK_TYPE, pool=pool, submitted_at=run.now, **common),
    )
    await run.connection.execute(
        insert(tasks).values(
            task_id=task,
            task_type=TASK_TYPE,
            experiment_id=experiment.id,
            start_time=run.now,
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
        preemption_timeout_s=3600,
        state="PENDING",
        requested_at=run.now,
    )
    run.requested.append(row)
    run.out.announce(JobChanged(job_id=job, what="submitted", pool=pool))
    run.out.announce(TaskChanged(task_id=task, task_type=TASK_TYPE, what="created"))
    note(row, f"Scheduling {row.name} (id: {allocation})", now=run.now, out=run.out)
    run.out.announce(changed(row, "requested"))
    return row
