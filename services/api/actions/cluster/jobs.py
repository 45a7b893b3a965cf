"""Changes of a job's priority, weight or pool, or of its position, which decide its place in the queue
(docs/reference/scheduling.md 6.1 and 6.3).

An experiment keeps them in its configuration too, where the engine reads them: trials that hold slots of another pool
are asked to leave, and come back as they should be. A priority decides in the queue alone, so what runs goes on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, Struct
from sqlalchemy import bindparam, exists, select, text, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.capacity import CapacityView
from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.cluster.resolution import resolve_pool
from libs.cluster.time_limits import limit_in_pool
from libs.cluster.topology import check_topology
from libs.config.stored import count_in, part
from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import jobs, tasks
from libs.db.tables.workspaces import projects, workspaces
from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest, ResoluteError
from libs.events.changes import JobChanged, PoolChanged
from services.api.actions.cluster.queue_moves import JobNotFound, find_place, lock_moves
from services.api.actions.experiment_lock import change, is_live, lock_experiment
from services.api.actions.resource_request import check_resources
from services.api.queries.workspaces.available_pools import unavailable_to
from services.api.queries.workspaces.config_policies import policies_in, workload_of
from services.api.wire.cluster.jobs import QueueControl

LEAST_PRIORITY, GREATEST_PRIORITY = 1, 99
_SET_IN_CONFIG: Final = text("""
    UPDATE interactive_tasks i
    SET config = i.config || jsonb_build_object('resources', coalesce(i.config -> 'resources', '{}'::jsonb) || :new)
    FROM tasks t WHERE t.task_id = i.task_id AND t.job_id = :job
""").bindparams(bindparam("new", type_=JSONB))


class _Change(Struct, frozen=True, kw_only=True):
    """Columns of ``jobs`` and keys of ``resources`` in a configuration that get new values."""

    columns: dict[str, Any]
    resources: dict[str, Any]


async def update_queue(
    db: Database, updates: Sequence[QueueControl], *, clock: Clock, cluster: ClusterConfig, capacity: CapacityView
) -> list[int]:
    """Do all of them, each by itself, and return the experiments among them.

    What is wrong with some does not keep the others from being done. Raises the error of the only one that failed, or
    InvalidRequest with the texts of all.
    """
    failed: list[ResoluteError] = []
    changed: list[int] = []
    for wanted in updates:
        try:
            changed += await _update_one(db, wanted, clock, cluster, capacity)
        except ResoluteError as error:
            failed.append(error)
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise InvalidRequest(f"encountered the following errors: {', '.join(str(error) for error in failed)}")
    return changed


async def _update_one(
    db: Database, wanted: QueueControl, clock: Clock, cluster: ClusterConfig, capacity: CapacityView
) -> list[int]:
    _check_shape(wanted)
    anchor = next((name for name in (wanted.ahead_of, wanted.behind_of) if isinstance(name, str)), None)

    async def work(connection: AsyncConnection) -> list[int]:
        if anchor is not None:
            pool = await connection.scalar(select(jobs.c.pool).where(jobs.c.job_id == wanted.job_id))
            await lock_moves(connection, pool or "")
        # The experiment before the job, as everybody who locks both.
        found = await connection.scalar(select(experiments.c.id).where(experiments.c.job_id == wanted.job_id))
        experiment = None if found is None else await lock_experiment(connection, found)
        job = await _live_job(connection, wanted.job_id, experiment)
        if isinstance(wanted.resource_pool, str):
            new = await _new_pool(
                connection, wanted.resource_pool, job=job, experiment=experiment, cluster=cluster, capacity=capacity
            )
        elif anchor is not None:
            new = await _new_place(connection, wanted, anchor, job=job, cluster=cluster, clock=clock)
        else:
            new = _new_standing(wanted, job)
        await _check_policies(connection, job, new, cluster)
        await connection.execute(update(jobs).where(jobs.c.job_id == wanted.job_id).values(**new.columns))
        if experiment is None:
            await _set_in_config(connection, wanted.job_id, new)
        else:
            resources = {**part(experiment.config, "resources"), **new.resources}
            await change(connection, experiment, "edited", config={**experiment.config, "resources": resources})
        await _announce(connection, job, new)
        return [] if found is None else [found]

    return await in_transaction(db, work)


def _check_shape(wanted: QueueControl) -> None:
    given = [
        name
        for name in ("ahead_of", "behind_of", "resource_pool", "priority", "weight")
        if getattr(wanted, name) is not UNSET
    ]
    if len(given) != 1:
        raise InvalidRequest(
            "updates: each changes exactly one of priority, weight, resourcePool, aheadOf and behindOf"
        )
    if isinstance(wanted.priority, int) and not LEAST_PRIORITY <= wanted.priority <= GREATEST_PRIORITY:
        raise InvalidRequest("priority must be between 1 and 99")
    if isinstance(wanted.weight, float) and not (wanted.weight > 0 and math.isfinite(wanted.weight)):
        raise InvalidRequest("weight must be greater than 0")


async def _live_job(connection: AsyncConnection, job_id: str, experiment: Any) -> Any:
    job = (await connection.execute(select(jobs).where(jobs.c.job_id == job_id).with_for_update())).one_or_none()
    if job is None:
        raise JobNotFound(job_id)
    if experiment is not None:
        lives = is_live(experiment)
    else:
        running = select(exists().where(tasks.c.job_id == job_id, tasks.c.end_time.is_(None)))
        lives = bool(await connection.scalar(running))
    if not lives:
        raise JobNotFound(job_id)
    return job


async def _set_in_config(connection: AsyncConnection, job_id: str, new: _Change) -> None:
    """An interactive task shows in its configuration what its job has."""
    values = {"job": job_id, "new": new.resources}
    await connection.execute(_SET_IN_CONFIG, values)


async def _check_policies(connection: AsyncConnection, job: Any, new: _Change, cluster: ClusterConfig) -> None:
    """Raises InvalidRequest for what the policies of its workspace fix or limit."""
    first = cluster.resource_manager.larger_priority_first
    workload = workload_of(job.job_type)
    policies = await policies_in(connection, job.workspace_id, workload, larger_priority_first=first)
    policies.check_change(new.resources)


def _new_standing(wanted: QueueControl, job: Any) -> _Change:
    if wanted.priority is UNSET:
        return _Change(columns={"weight": wanted.weight}, resources={"weight": wanted.weight})
    values = {"priority": wanted.priority}
    # Among those of another priority it has been moved nowhere (docs/reference/scheduling.md 5.2).
    position = job.queue_position if wanted.priority == job.priority else None
    return _Change(columns={**values, "queue_position": position}, resources=values)


async def _new_place(
    connection: AsyncConnection, wanted: QueueControl, anchor: str, *, job: Any, cluster: ClusterConfig, clock: Clock
) -> _Change:
    ahead = wanted.ahead_of is not UNSET
    place = await find_place(connection, job, anchor, ahead=ahead, cluster=cluster, now=clock.now())
    values = {} if place.priority is None else {"priority": place.priority}
    return _Change(columns={**values, "queue_position": place.position}, resources=values)


async def _new_pool(
    connection: AsyncConnection,
    wanted: str,
    *,
    job: Any,
    experiment: Any,
    cluster: ClusterConfig,
    capacity: CapacityView,
) -> _Change:
    if experiment is None:
        raise InvalidRequest(f"setting resource pool for job type {job.job_type} is not supported")
    resources = part(experiment.config, "resources")
    slots = count_in(resources, "slots_per_trial") or 0
    if wanted and cluster.pool(wanted) is None:
        raise InvalidRequest(f"invalid resource pool name {wanted}")
    workspace = (
        await connection.execute(
            select(
                workspaces.c.id,
                workspaces.c.default_compute_pool,
                workspaces.c.default_aux_pool,
                unavailable_to(workspaces.c.id).label("unavailable_pools"),
            )
            .join(projects, projects.c.workspace_id == workspaces.c.id)
            .where(projects.c.id == experiment.project_id)
        )
    ).one()
    pool = resolve_pool(
        cluster,
        name=wanted,
        slots=slots,
        workspace_compute=workspace.default_compute_pool,
        workspace_aux=workspace.default_aux_pool,
        workspace_id=workspace.id,
        unavailable=workspace.unavailable_pools or (),
    )
    if pool == job.pool:
        raise InvalidRequest(f"resource pool is unchanged ({pool} == {job.pool})")
    single_pod = bool(resources.get("is_single_node"))
    check_resources(cluster, capacity.of(pool), pool=pool, slots=slots, single_pod=single_pod)
    check_topology(cluster, pool, resources)
    new: dict[str, Any] = {"resource_pool": pool}
    if (limit := limit_in_pool(cluster, pool, count_in(resources, "time_limit"))) is not None:
        new["time_limit"] = limit  # for the allocations that its trials get there
    return _Change(columns={"pool": pool, "queue_position": None}, resources=new)


async def _announce(connection: AsyncConnection, job: Any, new: _Change) -> None:
    before = {"pool": job.pool, "priority": job.priority, "weight": job.weight}
    now = before | {name: value for name, value in new.columns.items() if name in before}
    await announce(
        connection,
        JobChanged(job_id=job.job_id, what="changed", **now),
        *(PoolChanged(pool=pool, what="queue") for pool in sorted({job.pool, now["pool"]})),
    )
