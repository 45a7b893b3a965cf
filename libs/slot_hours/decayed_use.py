"""Past use of a pool, for fair share that remembers (decay.py). What runs counts as it goes.

Nothing is stored for it. It follows from when allocations began and ended (``allocation_usage``), so that whoever reads
it next, after a kill too, gets the same; ``DecayedUse`` remembers what ended long ago, which only decays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.slot_hours.decay import decayed
from libs.slot_hours.use import SETTLES_WITHIN

_HALF_LIVES: Final = 32
"""What was used before has less than a billionth of its weight. PostgreSQL refuses powers that are too small."""
# Of a slot that was held from b to e it is 2 ^ -(at - e) - 2 ^ -(at - b), in half-lives.
_WEIGHED: Final = """
    slots * (power(2, extract(epoch FROM least(end_time, :at::timestamptz) - :at::timestamptz)::float8
                      / :half_life_s::float8)
             - power(2, extract(epoch FROM greatest(start_time, :begin::timestamptz) - :at::timestamptz)::float8
                        / :half_life_s::float8))
"""
_ENDED: Final = """
    SELECT u.owner_id, coalesce(u.workspace_id, t.workspace_id, 0) AS workspace_id, u.slots, u.start_time, u.end_time
    FROM allocation_usage u LEFT JOIN tasks t ON u.workspace_id IS NULL AND t.task_id = u.task_id
    WHERE u.pool = :pool AND u.end_time > greatest(:since::timestamptz, :begin::timestamptz) AND u.slots > 0
"""
_RUNNING: Final = """
    SELECT j.owner_id, j.workspace_id, a.slots, a.start_time, :at::timestamptz
    FROM allocations a JOIN jobs j ON j.job_id = a.job_id
    WHERE a.pool = :pool AND a.released_at IS NULL AND a.assigned_at IS NOT NULL AND a.slots > 0
"""
_BY_KEY: Final = f"SELECT owner_id, workspace_id, sum({_WEIGHED}) AS used FROM"
_GROUPED: Final = "WHERE start_time < least(end_time, :at::timestamptz) GROUP BY owner_id, workspace_id"
_SETTLED: Final = PreparedStatement(f"{_BY_KEY} ({_ENDED} AND u.end_time <= :at::timestamptz) ended {_GROUPED}")
# One statement, so that what ends meanwhile is in one of both parts.
_UNSETTLED: Final = PreparedStatement(f"{_BY_KEY} ({_ENDED} UNION ALL {_RUNNING}) used {_GROUPED}")

Holder = tuple[int, int]
"""Owner and workspace."""


class DecayedUse:
    """Of one pool. Several may read it at the same time."""

    def __init__(self, pool: str, half_life: timedelta) -> None:
        self._pool = pool
        self._half_life = half_life
        self._until: datetime | None = None
        self._settled: dict[Holder, float] = {}
        """At ``_until``, of what had ended by then."""
        self._settling = asyncio.Lock()

    async def read(self, connection: Connection, now: datetime) -> dict[Holder, float]:
        """Slots at ``now`` by owner and workspace, in their order."""
        async with self._settling:
            until = now - SETTLES_WITHIN
            if self._until is None or until > self._until:
                rows = await _SETTLED.rows(connection, **self._at(until))
                self._settled = _added(self._settled_at(until), rows)
                self._until = until
            settled, parameters = self._settled_at(now), self._at(now)
        found = _added(settled, await _UNSETTLED.rows(connection, **parameters))
        return dict(sorted(found.items()))

    def _at(self, at: datetime) -> dict[str, Any]:
        begin = at - _HALF_LIVES * self._half_life
        return {
            "pool": self._pool,
            "at": at,
            "begin": begin,
            "since": begin if self._until is None else self._until,
            "half_life_s": self._half_life.total_seconds(),
        }

    def _settled_at(self, at: datetime) -> dict[Holder, float]:
        if self._until is None:
            return {}
        after = max(at - self._until, timedelta())
        return {key: decayed(used, after, self._half_life) for key, used in self._settled.items()}


def _added(before: Mapping[Holder, float], rows: Iterable[Mapping[Any, Any]]) -> dict[Holder, float]:
    found = dict(before)
    for row in rows:
        key = (row["owner_id"], row["workspace_id"])
        found[key] = found.get(key, 0.0) + row["used"]
    return found


class UseOfPools:
    """Of all pools that remember it. Those who read it at the same time may share one."""

    def __init__(self) -> None:
        self._of: dict[str, DecayedUse] = {}

    def of(self, pool: str, half_life_s: int) -> DecayedUse:
        return self._of.setdefault(pool, DecayedUse(pool, timedelta(seconds=half_life_s)))
