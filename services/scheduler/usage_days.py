"""Sums up what was used on each day, once the day is over, for reports of days and months.

What is summed up stays as it is, whoever is renamed or deleted afterwards. Source: docs/reference/platform.md 13;
docs/reference/scheduling.md 10.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import structlog
from sqlalchemy import func, select, text

from libs.clock import Clock
from libs.config.experiment import LONGEST_LABEL
from libs.db.engine import Database
from libs.db.tables.cluster import usage_days
from libs.db.tables.tasks import allocation_usage
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()

EVERY_S: Final = 60.0
AFTER_MIDNIGHT: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)

_SUM_UP: Final = text("""
    WITH used AS MATERIALIZED (
      SELECT u.owner_id, u.pool,
             CASE jsonb_typeof(e.config -> 'labels') WHEN 'array' THEN e.config -> 'labels' ELSE u.labels END AS labels,
             u.slots * greatest(extract(epoch FROM least(coalesce(u.end_time, :midnight), :midnight)
                                                   - greatest(u.start_time, :begin)), 0) AS seconds
      FROM allocation_usage u
      LEFT JOIN experiments e ON e.id = u.experiment_id
      WHERE u.slots > 0 AND u.start_time < :midnight AND (u.end_time IS NULL OR u.end_time > :begin)
    ), waited AS (
      SELECT pool, extract(epoch FROM start_time - requested_at) AS seconds
      FROM allocation_usage WHERE start_time >= :begin AND start_time < :midnight
    )
    INSERT INTO usage_days (day, aggregation_type, aggregation_key, seconds)
    SELECT CAST(:day AS date), found.type, found.key, found.seconds FROM (
      SELECT 'total' AS type, 'total' AS key, coalesce(sum(seconds), 0) AS seconds FROM used
      UNION ALL
      SELECT 'username', coalesce(users.username, ''), sum(seconds)
      FROM used LEFT JOIN users ON users.id = used.owner_id GROUP BY 2
      UNION ALL
      SELECT 'resource_pool', pool, sum(seconds) FROM used GROUP BY pool
      UNION ALL
      SELECT 'experiment_label', label, sum(seconds)
      FROM used, LATERAL (
        SELECT DISTINCT left(jsonb_array_elements_text(labels), :longest) AS label
      ) of_experiment WHERE label IS NOT NULL GROUP BY label
      UNION ALL
      SELECT 'queued', pool, avg(seconds) FROM waited GROUP BY pool
      UNION ALL
      SELECT 'queued', 'total', avg(seconds) FROM waited HAVING count(*) > 0
    ) found
    ON CONFLICT DO NOTHING
""")


class UsageDays:
    """Adds the days that are missing, soon after midnight in UTC."""

    def __init__(self, *, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def run(self) -> None:
        """Now and then, until cancelled."""
        await run_periodically("usage days", self.add_missing, every_s=EVERY_S, wake=asyncio.Event())

    async def add_missing(self) -> None:
        """Each day in a transaction of its own, so that a long history is not lost half-way."""
        today = (self._clock.now() - AFTER_MIDNIGHT).astimezone(UTC).date()
        day = await self._first_missing()
        while day is not None and day < today:
            begin = datetime.combine(day, time(), UTC)
            async with self._db.transaction() as connection:
                values = {"day": day, "begin": begin, "midnight": begin + _DAY, "longest": LONGEST_LABEL}
                await connection.execute(_SUM_UP, values)
            log.info("usage.summed_up", day=day.isoformat())
            day += _DAY

    async def _first_missing(self) -> date | None:
        """The day after the last one there is, or that of the first allocation; None before anything has run."""
        async with self._db.read() as connection:
            last = await connection.scalar(select(func.max(usage_days.c.day)))
            if last is not None:
                following: date = last + _DAY
                return following
            first = await connection.scalar(select(func.min(allocation_usage.c.start_time)))
        return None if first is None else first.astimezone(UTC).date()
