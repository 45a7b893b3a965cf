"""Place of the job of an experiment in the queue of its pool.

Source: docs/reference/scheduling.md 5.2 (ranks in the queue) and 6.2 (jobs ahead); only jobs that users see count.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from functools import cache

from msgspec import Struct
from sqlalchemy import ARRAY, ColumnElement, Text, any_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig, SchedulerConfig
from libs.db.engine import DriverConnection
from libs.db.tables.tasks import allocations, jobs
from libs.job_rank import JobRank, job_rank
from services.api.queries.prepared import PreparedQuery, given
from services.api.wire.experiments.experiments import JobState, JobSummary

NO_LINE = -1
"""Jobs ahead, in a pool that shares its slots out instead of lining jobs up."""


class QueueEntry(Struct, frozen=True):
    """A job that holds or wants slots; ``rank`` sorts ascending, the first in line first."""

    job_id: str
    rank: JobRank
    scheduled: bool


def stored_position(value: Decimal | None) -> int | None:
    """Where a job was moved to, from its row."""
    return None if value is None else int(value)


def scheduled_at(cluster: ClusterConfig) -> ColumnElement[datetime]:
    """When the pods of an allocation had their places; NULL before, and never NULL again.

    In a cluster the plan only lets pods in, and its scheduler may take its time: they count from the moment from which
    all of them are seen on nodes, which is when the allocation starts (docs/reference/kubernetes.md 7).
    """
    return allocations.c.start_time if cluster.resource_manager.binds_by_itself else allocations.c.assigned_at


async def job_summary(
    connection: AsyncConnection | DriverConnection, cluster: ClusterConfig, job_id: str
) -> JobSummary | None:
    """The state of a job and how many others come before it; None when it is not in the queue (as when paused)."""
    rows = await _line(scheduled_at(cluster)).rows(connection, job=job_id)
    if not rows:
        return None
    larger_first = cluster.resource_manager.larger_priority_first
    queue: list[QueueEntry] = []
    lines_up = True
    for row in rows:
        pool = cluster.pool(row.pool)
        scheduler = cluster.scheduler_of(pool) if pool else SchedulerConfig()
        lines_up = lines_up and scheduler.has_line
        priority = cluster.default_priority(row.pool) if row.priority is None else row.priority
        level = priority if scheduler.has_levels else 0
        position = stored_position(row.queue_position) if scheduler.has_line else None
        rank = job_rank(level, row.submitted_at, row.job_id, larger_first, position)
        queue.append(QueueEntry(row.job_id, rank, row.scheduled))
    return summarise(queue, job_id, lines_up=lines_up)


@cache
def _line(scheduled_at: ColumnElement[datetime]) -> PreparedQuery:
    """The jobs of the pools in which a job holds or wants slots."""
    mine = given("job", allocations.c.job_id)
    pool_of_job = select(allocations.c.pool).where(allocations.c.job_id == mine, allocations.c.released_at.is_(None))
    # An array is made before anything else: of a job that is not in the queue, which most are not, nothing is joined.
    pools = func.array(pool_of_job.scalar_subquery(), type_=ARRAY(Text))
    return PreparedQuery(
        select(
            jobs.c.job_id,
            jobs.c.priority,
            jobs.c.submitted_at,
            jobs.c.queue_position,
            allocations.c.pool,
            func.bool_or(scheduled_at.is_not(None)).label("scheduled"),
        )
        .join(jobs, jobs.c.job_id == allocations.c.job_id)
        .where(
            allocations.c.released_at.is_(None),
            allocations.c.pool == any_(pools),
            jobs.c.job_type != "CHECKPOINT_GC",
        )
        .group_by(jobs.c.job_id, allocations.c.pool)
    )


def summarise(queue: Iterable[QueueEntry], job_id: str, *, lines_up: bool = True) -> JobSummary | None:
    """The summary of one job among all jobs of its pool; None when it is not among them."""
    by_id = {job.job_id: job for job in queue}
    own = by_id.get(job_id)
    if own is None:
        return None
    ahead = sum(other.rank < own.rank for other in by_id.values()) if lines_up else NO_LINE
    return JobSummary(state=JobState.SCHEDULED if own.scheduled else JobState.QUEUED, jobs_ahead=ahead)
