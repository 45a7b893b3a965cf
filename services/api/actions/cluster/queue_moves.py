"""Moves a job ahead of or behind another one in the queue of its pool (docs/reference/scheduling.md 5.2 and 16, B11).

Positions count among jobs of one priority: a job that is moved to one of another priority takes that priority over.
Moves in one pool follow one another, whoever makes them, so that each sees the line as the one before has left it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.db.tables.tasks import jobs
from libs.errors import InvalidRequest, ResoluteError
from libs.job_rank import position_at
from services.api.actions.cluster.positions import insert_at
from services.api.queries.cluster.jobs import QueuedJob, in_line, load_queue

_LOCK: Final = text("SELECT pg_advisory_xact_lock(:space, hashtext(:pool))")
_SPACE: Final = 0x5E51
"""First half of the advisory locks of moves; the second is a hash of the pool."""
_SET: Final = text("""
    UPDATE jobs SET queue_position = given.at
    FROM (SELECT unnest(CAST(:ids AS text[])) AS job_id, unnest(CAST(:positions AS numeric[])) AS at
          ORDER BY job_id) given
    WHERE jobs.job_id = given.job_id
""")


class JobNotFound(ResoluteError):
    """Clients know this text; unlike others it has no quotes."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} not found")


class LinePlace(Struct, frozen=True):
    position: Decimal
    priority: int | None
    """To be taken over; None where it stays, and where priorities decide nothing."""


async def lock_moves(connection: AsyncConnection, pool: str) -> None:
    """Let other moves in the pool wait for the end of the transaction. To be called before rows are locked."""
    await connection.execute(_LOCK, {"space": _SPACE, "pool": pool})


async def find_place(
    connection: AsyncConnection, job: Any, anchor: str, *, ahead: bool, cluster: ClusterConfig, now: datetime
) -> LinePlace:
    """The place of ``job`` (a row of ``jobs``) directly ahead of, or directly behind, the job ``anchor``.

    Raises InvalidRequest where there is no such place: the scheduler of the pool shares slots out, the anchor is the
    job itself, or is not in the queue of its pool; JobNotFound when there is no such job at all.
    """
    config = cluster.pool(job.pool)
    scheduler = None if config is None else cluster.scheduler_of(config)
    if scheduler is not None and not scheduler.has_line:
        raise InvalidRequest(
            "jobs cannot be moved ahead of or behind each other in resource pool "
            f"{job.pool}: its scheduler is {scheduler.type}, under which there is no line; change their weight instead"
        )
    if anchor == job.job_id:
        raise InvalidRequest(f"job {anchor} cannot be moved ahead of or behind itself")
    queue = await load_queue(connection, cluster, job.pool)
    found = next((other for other in queue if other.job_id == anchor), None)
    if found is None:
        raise await _not_in_line(connection, job, anchor)
    has_levels = scheduler is None or scheduler.has_levels
    own = cluster.default_priority(job.pool) if job.priority is None else job.priority
    level = [
        other for other in queue if other.job_id != job.job_id and (not has_levels or other.priority == found.priority)
    ]
    line = [standing.job for standing in in_line(level, cluster, job.pool)]
    at = await _insert(connection, line, line.index(found) + (0 if ahead else 1), now=now)
    return LinePlace(Decimal(at), found.priority if has_levels and found.priority != own else None)


async def _insert(connection: AsyncConnection, line: Sequence[QueuedJob], index: int, *, now: datetime) -> int:
    """The position before ``line[index]``; the rows of others make room where they have to."""
    positions = [position_at(one.submitted_at) if one.position is None else one.position for one in line]
    moved = insert_at(positions, index, now=position_at(now))
    if moved.others:
        ids = [line[other].job_id for other in moved.others]
        await connection.execute(_SET, {"ids": ids, "positions": [Decimal(at) for at in moved.others.values()]})
    return moved.position


async def _not_in_line(connection: AsyncConnection, job: Any, anchor: str) -> ResoluteError:
    pool = await connection.scalar(select(jobs.c.pool).where(jobs.c.job_id == anchor))
    if pool is None:
        return JobNotFound(anchor)
    if pool != job.pool:
        return InvalidRequest(
            f"job {job.job_id} is in resource pool {job.pool}, and job {anchor} in {pool}: "
            "only jobs of one resource pool stand ahead of or behind each other"
        )
    return InvalidRequest(f"job {anchor} is not in the queue of resource pool {pool}: it neither waits nor runs")
