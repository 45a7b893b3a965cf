"""The queue of a pool as users see it: jobs that hold or want slots, in the order in which they get them.

Source: docs/reference/scheduling.md 5.2 (order), 6.2 and 6.3. Checkpoint GC is invisible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig, SchedulerConfig
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations, jobs, tasks
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects
from libs.job_rank import JobRank, job_rank
from libs.tasks import generic
from services.api.queries.experiments.job_summary import NO_LINE, scheduled_at, stored_position
from services.api.queries.prepared import PreparedQuery, given, one_of_given
from services.api.wire.base import double, timestamp
from services.api.wire.cluster.jobs import DayInQueue, Job, JobType
from services.api.wire.cluster.pools import QueueStats
from services.api.wire.experiments.experiments import JobState, JobSummary

INVISIBLE: Final = "CHECKPOINT_GC"
DAYS_AVERAGED: Final = 30


class QueuedJob(Struct, frozen=True, kw_only=True):
    """A job with everything it holds and wants in one pool."""

    job_id: str
    job_type: str
    owner_id: int
    workspace_id: int
    pool: str
    priority: int
    weight: float
    submitted_at: datetime
    position: int | None
    requested_slots: int
    allocated_slots: int
    scheduled: bool
    preemptible: bool
    name: str

    @property
    def state(self) -> JobState:
        return JobState.SCHEDULED if self.scheduled else JobState.QUEUED


class Standing(Struct, frozen=True):
    """A job and how many others come before it."""

    job: QueuedJob
    jobs_ahead: int


async def load_queue(connection: AsyncConnection, cluster: ClusterConfig, pool: str | None = None) -> list[QueuedJob]:
    """The jobs of one pool, or of all when it is None; in no order."""
    return [
        QueuedJob(
            job_id=row.job_id,
            job_type=row.job_type,
            owner_id=row.owner_id,
            workspace_id=row.workspace_id,
            pool=row.queued_in,
            priority=cluster.default_priority(row.queued_in) if row.priority is None else row.priority,
            weight=row.weight,
            submitted_at=row.submitted_at,
            position=stored_position(row.queue_position),
            requested_slots=row.requested_slots,
            allocated_slots=row.allocated_slots,
            scheduled=row.scheduled,
            preemptible=row.preemptible and _preempts(cluster, row.queued_in),
            name=row.name,
        )
        for row in await _queued(scheduled_at(cluster)).rows(connection, pool=pool)
    ]


@cache
def _queued(scheduled_at: ColumnElement[datetime]) -> PreparedQuery:
    """Jobs of the pool, or of all for NULL."""
    scheduled, pool = scheduled_at.is_not(None), given("pool", allocations.c.pool)
    return PreparedQuery(
        select(
            jobs,
            allocations.c.pool.label("queued_in"),
            func.sum(allocations.c.slots).label("requested_slots"),
            func.sum(case((scheduled, allocations.c.slots), else_=0)).label("allocated_slots"),
            func.bool_or(scheduled).label("scheduled"),
            func.bool_and(allocations.c.preemptible).label("preemptible"),
            func.min(allocations.c.name).label("name"),
        )
        .join(jobs, jobs.c.job_id == allocations.c.job_id)
        .where(
            allocations.c.released_at.is_(None),
            jobs.c.job_type != INVISIBLE,
            or_(pool.is_(None), allocations.c.pool == pool),
        )
        .group_by(jobs.c.job_id, allocations.c.pool)
    )


def _preempts(cluster: ClusterConfig, pool: str) -> bool:
    config = cluster.pool(pool)
    return config is not None and cluster.scheduler_of(config).preempts


def in_line(queue: Iterable[QueuedJob], cluster: ClusterConfig, pool: str) -> list[Standing]:
    """The jobs of ``pool`` as the queue ranks them; where slots are shared out there is no line, only a rank."""
    larger_first = cluster.resource_manager.larger_priority_first
    config = cluster.pool(pool)
    scheduler = SchedulerConfig() if config is None else cluster.scheduler_of(config)

    def rank(job: QueuedJob) -> JobRank:
        level = job.priority if scheduler.has_levels else 0
        position = job.position if scheduler.has_line else None
        return job_rank(level, job.submitted_at, job.job_id, larger_first, position)

    lines_up = scheduler.has_line
    ordered = sorted(queue, key=rank)
    return [Standing(job, place if lines_up else NO_LINE) for place, job in enumerate(ordered)]


def stats_by_pool(queue: Iterable[QueuedJob]) -> dict[str, QueueStats]:
    """How many jobs of each pool wait, and how many hold something; pools without jobs are absent."""
    counts = Counter((job.pool, job.scheduled) for job in queue)
    return {
        pool: QueueStats(queued_count=counts[pool, False], scheduled_count=counts[pool, True])
        for pool in {pool for pool, _ in counts}
    }


async def wire_jobs(connection: AsyncConnection, standings: Sequence[Standing]) -> list[Job]:
    """The jobs as clients see them, in the same order. A job whose object was deleted meanwhile is left out."""
    ids = [standing.job.job_id for standing in standings]
    usernames = await _usernames(connection, {standing.job.owner_id for standing in standings})
    objects = await _experiments(connection, ids) | await _tasks(connection, ids)
    return [
        _wire(standing, objects[standing.job.job_id], usernames[standing.job.owner_id])
        for standing in standings
        if standing.job.job_id in objects
    ]


def _wire(standing: Standing, entity: Mapping[str, Any], username: str) -> Job:
    job = standing.job
    return Job(
        summary=JobSummary(state=job.state, jobs_ahead=standing.jobs_ahead),
        type=JobType[job.job_type],
        submission_time=timestamp(job.submitted_at),
        username=username,
        user_id=job.owner_id,
        resource_pool=job.pool,
        is_preemptible=job.preemptible,
        priority=job.priority,
        weight=double(job.weight),
        entity_id=entity["entity_id"],
        job_id=job.job_id,
        requested_slots=job.requested_slots,
        allocated_slots=job.allocated_slots,
        name=entity.get("name") or job.name,
        progress=double(entity.get("progress") or 0.0),
        workspace_id=entity.get("workspace_id") or job.workspace_id,
    )


_USERNAMES: Final = PreparedQuery(select(users.c.id, users.c.username).where(one_of_given(users.c.id, "ids")))
_EXPERIMENTS: Final = PreparedQuery(
    select(
        experiments.c.job_id,
        experiments.c.id,
        experiments.c.progress,
        experiments.c.config["name"].astext.label("name"),
        projects.c.workspace_id,
    )
    .join(projects, projects.c.id == experiments.c.project_id)
    .where(one_of_given(experiments.c.job_id, "job_ids"))
)
_TASKS: Final = PreparedQuery(
    select(tasks.c.job_id, tasks.c.task_id, tasks.c.task_type).where(
        one_of_given(tasks.c.job_id, "job_ids"), tasks.c.task_type != "TRIAL"
    )
)


async def _usernames(connection: AsyncConnection, ids: Iterable[int]) -> dict[int, str]:
    return {row.id: row.username for row in await _USERNAMES.rows(connection, ids=list(ids))}


async def _experiments(connection: AsyncConnection, job_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    return {
        row.job_id: {
            "entity_id": str(row.id),
            "name": row.name,
            "progress": row.progress,
            "workspace_id": row.workspace_id,
        }
        for row in await _EXPERIMENTS.rows(connection, job_ids=job_ids)
    }


async def _tasks(connection: AsyncConnection, job_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    return {
        row.job_id: {"entity_id": row.task_id, "name": generic.NAME if row.task_type == generic.TASK_TYPE else None}
        for row in await _TASKS.rows(connection, job_ids=job_ids)
    }


async def days_in_queue(
    connection: AsyncConnection, cluster: ClusterConfig, pool: str, now: datetime
) -> list[DayInQueue]:
    """The average wait in a pool on each of the last days on which something got its places; today is always there."""
    since = (now - timedelta(days=DAYS_AVERAGED)).replace(hour=0, minute=0, second=0, microsecond=0)
    scheduled = scheduled_at(cluster)
    day = func.to_char(func.timezone("UTC", scheduled), "YYYY-MM-DD")
    waited = func.avg(func.extract("epoch", scheduled - allocations.c.requested_at))
    query = (
        select(day.label("day"), waited.label("seconds"))
        .join(jobs, jobs.c.job_id == allocations.c.job_id)
        .where(allocations.c.pool == pool, scheduled >= since, jobs.c.job_type != INVISIBLE)
        .group_by(day)
        .order_by(day)
    )
    days = {row.day: float(row.seconds) for row in await connection.execute(query)}
    days.setdefault(now.strftime("%Y-%m-%d"), 0.0)
    return [DayInQueue(period_start=start, seconds=seconds) for start, seconds in days.items()]
