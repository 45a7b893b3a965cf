"""What has been used since an instant: by allocations that have ended, and by those that run.

An allocation that runs uses what it has run, and what is left of its time limit, where it has one. Those that have
ended are kept for ever (``allocation_usage``), and there may be very many of them: whoever asks often adds up what
ended long ago once, and afterwards only what has ended since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement

SETTLES_WITHIN: Final = timedelta(minutes=10)
"""After this time, whoever has written the end of an allocation has committed it."""
_ENDED: Final = """
    SELECT u.pool, u.owner_id, coalesce(u.workspace_id, t.workspace_id, 0) AS workspace_id,
           u.slots * extract(epoch FROM u.end_time - greatest(u.start_time, :begin::timestamptz))::float8 AS spent_s,
           0::float8 AS rest_s
    FROM allocation_usage u LEFT JOIN tasks t ON u.workspace_id IS NULL AND t.task_id = u.task_id
    WHERE u.end_time > :since::timestamptz AND u.slots > 0 AND u.start_time < u.end_time
"""
_BY_KEY: Final = "SELECT pool, owner_id, workspace_id, sum(spent_s) AS spent_s, sum(rest_s) AS rest_s FROM"
_GROUPED: Final = "GROUP BY pool, owner_id, workspace_id"
_RUNNING: Final = """
    SELECT a.pool, j.owner_id, j.workspace_id,
           CASE WHEN a.start_time < :now::timestamptz THEN
             a.slots * extract(epoch FROM :now::timestamptz - greatest(a.start_time, :begin::timestamptz))::float8
           ELSE 0 END,
           a.slots * greatest(a.time_limit_s - a.ran_before_s
                              - coalesce(extract(epoch FROM :now::timestamptz - a.start_time)::float8, 0), 0)
    FROM allocations a JOIN jobs j ON j.job_id = a.job_id
    WHERE a.released_at IS NULL AND a.assigned_at IS NOT NULL AND a.slots > 0
"""
_SETTLED: Final = PreparedStatement(f"{_BY_KEY} ({_ENDED} AND u.end_time <= :until::timestamptz) ended {_GROUPED}")
# One statement, so that what ends meanwhile is in one of both parts.
_UNSETTLED: Final = PreparedStatement(f"{_BY_KEY} ({_ENDED} UNION ALL {_RUNNING}) used {_GROUPED}")

Key = tuple[str, int, int]
"""Pool, owner and workspace."""


class Use(Struct, frozen=True):
    """In slot-seconds."""

    spent_s: float = 0.0
    rest_s: float = 0.0
    """What those that run may still use, as far as they say."""

    @property
    def total_s(self) -> float:
        return self.spent_s + self.rest_s

    def __add__(self, other: Use) -> Use:
        return Use(self.spent_s + other.spent_s, self.rest_s + other.rest_s)


class UseSince:
    """Use since ``begin``, which remembers what has settled. Several may read it at the same time."""

    def __init__(self, begin: datetime) -> None:
        self.begin = begin
        self._until = begin
        self._settled: dict[Key, Use] = {}
        self._settling = asyncio.Lock()

    async def read(self, connection: Connection, now: datetime) -> dict[Key, Use]:
        """The use at ``now`` by pool, owner and workspace."""
        async with self._settling:
            until = max(now - SETTLES_WITHIN, self._until)
            if until > self._until:
                rows = await _SETTLED.rows(connection, begin=self.begin, since=self._until, until=until)
                self._settled = _added(self._settled, rows)
                self._until = until
            settled = self._settled
        return _added(settled, await _UNSETTLED.rows(connection, begin=self.begin, since=until, now=now))


def _added(before: Mapping[Key, Use], rows: Iterable[Mapping[Any, Any]]) -> dict[Key, Use]:
    found = dict(before)
    for row in rows:
        key = (row["pool"], row["owner_id"], row["workspace_id"])
        found[key] = found.get(key, Use()) + Use(row["spent_s"] or 0.0, row["rest_s"] or 0.0)
    return found
