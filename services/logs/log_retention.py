"""Retention of log lines: makes partitions for those to come, and removes those whose time is over.

A day's partition is dropped as soon as no task that has lines in it is to be kept, which costs nothing; the lines of a
task whose time is over while its neighbours' is not are deleted in small transactions. Source:
docs/reference/logs.md 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import asyncpg
import msgspec
import structlog

from libs.bus import CoreMessage
from libs.clock import Clock
from libs.db.connecting.pool import DriverPool
from libs.db.failures import is_connection_failure
from libs.loglines.partitions import DAY_PARTITION, SHARD_LOCK, day_partition, day_partition_ddl
from libs.telemetry import counter
from services.logs.settings import RetentionSettings

log = structlog.get_logger()

REMOVED = counter("resolute_logs_lines_removed_total", "Lines whose time was over")

ROWS_AT_ONCE: Final = 10_000
ORPHANED_AFTER: Final = timedelta(days=1)
"""How long lines of a task outlive its deletion."""
_RETRY_S: Final = 10.0
_RETENTION_LOCK: Final = -1  # no shard has this number

_REFUSALS: Final = ("55P03", "23514", "42P07", "40P01")
"""A lock that was not to be had in time, or rows in the default partition that belong into the new one."""
_EXPIRED: Final = """
    WITH logged AS (SELECT task_id, max(written_at) AS written_at FROM log_streams GROUP BY task_id)
    SELECT l.task_id FROM logged l LEFT JOIN tasks t ON t.task_id = l.task_id
    LEFT JOIN trial_tasks tt ON tt.task_id = l.task_id LEFT JOIN trials r ON r.id = tt.trial_id
    WHERE CASE WHEN t.task_id IS NULL THEN l.written_at < $2
        ELSE coalesce(r.log_retention_days, $3::int) >= 0
            AND t.end_time <= $1::timestamptz - make_interval(days => coalesce(r.log_retention_days, $3::int)) END
    ORDER BY l.task_id
"""
_DAYS: Final = """
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'task_logs'::regclass AND c.relname LIKE $1 ORDER BY 1
"""
_IS_KEPT: Final = """
    SELECT EXISTS (SELECT FROM log_streams WHERE opened_at < $2 AND written_at >= $1 AND task_id <> ALL($3::text[]))
"""
_DELETE: Final = """
    WITH gone AS (
        DELETE FROM task_logs WHERE task_id = $1 AND id IN
            (SELECT id FROM task_logs WHERE task_id = $1 ORDER BY id LIMIT $2)
        RETURNING 1
    )
    SELECT count(*) FROM gone
"""


class LogRetention:
    """Makes partitions and removes what has expired. Any number of replicas may do so at once."""

    def __init__(self, *, db: DriverPool, clock: Clock, settings: RetentionSettings) -> None:
        self._db = db
        self._clock = clock
        self._settings = settings
        self._default_days = -1 if settings.default_days is None else settings.default_days

    async def run(self) -> None:
        """Do both now and once per interval, until cancelled; without the database, as soon as it is back."""
        while True:
            pause_s = self._settings.interval_s
            try:
                await self.make_partitions()
                removed = await self.remove_expired()
                if removed:
                    log.info("logs.expired", lines=removed)
            except Exception as error:
                if not is_connection_failure(error):
                    raise
                log.warning("logs.retention_interrupted", error=str(error))
                pause_s = min(_RETRY_S, pause_s)
            await asyncio.sleep(pause_s)

    async def serve_cleanup(self, message: CoreMessage) -> bytes:
        """Answer ``POST /cleanup_logs``, which the api passes on: ``{"removed": <lines>}``."""
        return msgspec.json.encode({"removed": await self.remove_expired()})

    async def serve_default(self, message: CoreMessage) -> bytes:
        """Answer how long lines are kept that nobody has spoken about: ``{"days": <-1 is for ever>}``."""
        return msgspec.json.encode({"days": self._default_days})

    async def make_partitions(self) -> None:
        """Partitions for today and the days ahead, wherever lines have not already gone to the default partition."""
        today = self._clock.now().astimezone(UTC).date()
        for offset in range(self._settings.partitions_ahead + 1):
            await self._make_partition(today + timedelta(days=offset))

    async def _make_partition(self, day: date) -> None:
        async with self._db.read() as connection:
            if await _exists(connection, day):
                return
        try:
            async with self._locked() as connection:
                await connection.execute(day_partition_ddl(day))
        except asyncpg.PostgresError as error:
            if is_connection_failure(error) and not _is_refusal(error):
                raise
            # Lines are stored in the default partition meanwhile: later to expire, never lost.
            log.warning("logs.partition_not_made", day=str(day), error=str(error))

    async def remove_expired(self) -> int:
        """Number of lines removed: those of tasks that ended longer ago than their retention, or exist no more."""
        expired = await self._expired()
        removed = 0
        for day in await self._days_past():
            removed += await self._drop_if_expired(day, expired)
        for task in expired:
            removed += await self._delete(task)
        REMOVED.inc(removed)
        return removed

    async def _expired(self) -> list[str]:
        now = self._clock.now()
        async with self._db.read() as connection:
            rows = await connection.fetch(_EXPIRED, now, now - ORPHANED_AFTER, self._default_days)
        return [row["task_id"] for row in rows]

    async def _days_past(self) -> list[date]:
        today = self._clock.now().astimezone(UTC).date()
        async with self._db.read() as connection:
            rows = await connection.fetch(_DAYS, DAY_PARTITION.replace("_", r"\_") + "________")
        days = [datetime.strptime(name.removeprefix(DAY_PARTITION), "%Y%m%d").date() for (name,) in rows]
        # Yesterday's may still be written to by a transaction that began before midnight.
        return [day for day in days if day < today - timedelta(days=1)]

    async def _drop_if_expired(self, day: date, expired: Sequence[str]) -> int:
        begin = datetime.combine(day, time.min, UTC)
        try:
            async with self._locked() as connection:
                if not await _exists(connection, day):
                    return 0  # another replica was faster
                if await connection.fetchval(_IS_KEPT, begin, begin + timedelta(days=1), list(expired)):
                    return 0
                rows = await connection.fetchval(f"SELECT count(*) FROM {day_partition(day)}")  # noqa: S608
                await connection.execute(f"DROP TABLE {day_partition(day)}")
        except asyncpg.PostgresError as error:
            if not _is_refusal(error):
                raise
            log.info("logs.partition_not_dropped", day=str(day), error=str(error))  # in use; the next round
            return 0
        log.info("logs.partition_dropped", day=str(day), lines=rows)
        return int(rows or 0)

    async def _delete(self, task: str) -> int:
        removed = 0
        while True:
            async with self._db.transaction() as connection:
                gone: int = await connection.fetchval(_DELETE, task, ROWS_AT_ONCE)
                removed += gone
                if gone < ROWS_AT_ONCE:
                    await connection.execute("DELETE FROM log_streams WHERE task_id = $1", task)
                    return removed

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[Any]:
        """A transaction that is the only one of its kind, and would rather fail than hold up the writers."""
        async with self._db.transaction() as connection:
            await connection.execute("SET LOCAL lock_timeout = '3s'")
            await connection.execute("SELECT pg_advisory_xact_lock($1, $2)", SHARD_LOCK, _RETENTION_LOCK)
            yield connection


async def _exists(connection: Any, day: date) -> bool:
    return bool(await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", day_partition(day)))


def _is_refusal(error: asyncpg.PostgresError) -> bool:
    return error.sqlstate in _REFUSALS
