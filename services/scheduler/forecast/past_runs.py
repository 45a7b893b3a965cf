"""Reads how long allocations ran in the last weeks: medians, for what is expected of those that follow."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.plan.forecast.run_times import SIZES, PastRuns, RunKind

REMEMBERED: Final = timedelta(days=30)
_MOST: Final = 5000
"""Runs that are looked at: the last ones."""
_FRESH_S: Final = 60.0

# What was asked to leave, or killed, says nothing of how long the work takes.
_RUNS: Final = PreparedStatement("""
    WITH runs AS (
        SELECT owner_id, task_type, pool, width_bucket(slots, :sizes::int[]) AS size,
               extract(epoch FROM end_time - start_time)::float8 AS seconds
        FROM (
            SELECT u.* FROM allocation_usage u
            WHERE u.end_time > :since ORDER BY u.end_time DESC LIMIT :most
        ) u
        WHERE u.start_time IS NOT NULL AND NOT EXISTS (
            SELECT FROM allocations a WHERE a.allocation_id = u.allocation_id
            AND (a.preempted_at IS NOT NULL OR a.killed_at IS NOT NULL)
        )
    )
    SELECT owner_id, task_type, pool, size, count(*) AS runs,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median
    FROM runs GROUP BY GROUPING SETS ((owner_id, task_type, size), (owner_id, task_type), (pool, task_type))
""")
_KINDS: Final = PreparedStatement("""
    SELECT a.allocation_id, t.owner_id, t.task_type, a.pool, a.slots
    FROM allocations a JOIN tasks t ON t.task_id = a.task_id
    WHERE a.released_at IS NULL AND a.allocation_id = ANY(:ids::text[])
""")


class PastRunsCache:
    """Medians, read anew once a minute at most, and only when somebody asks; one for all who do."""

    def __init__(self, *, otherwise: timedelta) -> None:
        self._otherwise = otherwise
        self.known = PastRuns(otherwise=otherwise)
        """What was read last; nothing at first."""
        self._read_at: float | None = None

    async def get(self, connection: Connection, *, now: datetime) -> PastRuns:
        if self._read_at is None or time.monotonic() - self._read_at >= _FRESH_S:
            rows = await _RUNS.rows(connection, since=now - REMEMBERED, most=_MOST, sizes=list(SIZES))
            self.known = past_runs_of(rows, otherwise=self._otherwise)
            self._read_at = time.monotonic()
        return self.known


def past_runs_of(rows: Iterable[Mapping[Any, Any]], *, otherwise: timedelta) -> PastRuns:
    by_size: dict[tuple[int, str, int], tuple[timedelta, int]] = {}
    by_owner: dict[tuple[int, str], tuple[timedelta, int]] = {}
    by_pool: dict[tuple[str, str], tuple[timedelta, int]] = {}
    for row in rows:
        found = timedelta(seconds=max(row["median"], 0.0)), row["runs"]
        if row["pool"] is not None:
            by_pool[row["pool"], row["task_type"]] = found
        elif row["size"] is not None:
            by_size[row["owner_id"], row["task_type"], row["size"]] = found
        else:
            by_owner[row["owner_id"], row["task_type"]] = found
    return PastRuns(by_size=by_size, by_owner=by_owner, by_pool=by_pool, otherwise=otherwise)


async def run_kinds(connection: Connection, allocations: Iterable[str]) -> dict[str, RunKind]:
    """What the lengths of the runs of ``allocations`` depend on; those that are gone are left out."""
    rows = await _KINDS.rows(connection, ids=list(allocations))
    return {
        row["allocation_id"]: RunKind(
            owner=row["owner_id"], task_type=row["task_type"], pool=row["pool"], slots=row["slots"]
        )
        for row in rows
    }
