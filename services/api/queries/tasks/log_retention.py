"""The time for which the logs of a trial are still kept (docs/reference/logs.md 4.9, 6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.errors import NotFound

KEPT_FOR_EVER: Final = -1


class TrialRetention(Struct, frozen=True):
    days: int | None
    """After the end; None is what the installation does with logs that nobody has spoken about."""
    ended_at: datetime | None
    """Of the last of its tasks."""


async def load_trial_retention(connection: AsyncConnection, trial_id: int) -> TrialRetention:
    """Raises NotFound."""
    last = (
        select(tasks.c.end_time)
        .join(trial_tasks, trial_tasks.c.task_id == tasks.c.task_id)
        .where(trial_tasks.c.trial_id == trials.c.id)
        .order_by(trial_tasks.c.position.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = select(trials.c.log_retention_days, last).where(trials.c.id == trial_id)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise NotFound("trial", trial_id)
    return TrialRetention(*row)


async def remaining_days(
    kept: TrialRetention, *, default_days: Callable[[], Awaitable[int]], now: datetime
) -> int | None:
    """Whole days that are left: -1 for ever, 0 when they are over, None when the trial has not ended.

    default_days  asked only when the trial has none of its own
    """
    days = await default_days() if kept.days is None else kept.days
    if days <= KEPT_FOR_EVER:
        return KEPT_FOR_EVER
    if kept.ended_at is None:
        return None
    return max(0, (kept.ended_at + timedelta(days=days) - now).days)
