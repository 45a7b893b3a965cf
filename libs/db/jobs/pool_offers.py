"""Rows that say in which pools the tasks of a job may start beside its own (libs/db/tables/tasks.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import delete, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.tasks import pool_offers


class PoolOffer(Struct, frozen=True, kw_only=True):
    pool: str
    rank: int
    """0 is the pool in which the job is queued."""
    after_s: float
    """How long a task waits before it may start there."""
    num_pods: int
    time_limit_s: int | None
    changes: dict[str, Any] = {}
    """What is different there in what is stored of the task (libs/config/differences.py)."""


async def store_offers(connection: AsyncConnection, job_id: str, offers: Sequence[PoolOffer], *, anew: bool) -> None:
    """Store those of a job; ``anew`` in place of those that it had."""
    if anew:
        await connection.execute(delete(pool_offers).where(pool_offers.c.job_id == job_id))
    if offers:
        rows = [{"job_id": job_id, **msgspec.structs.asdict(offer)} for offer in offers]
        await connection.execute(insert(pool_offers), rows)
