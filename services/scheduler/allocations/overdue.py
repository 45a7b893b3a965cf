"""Ends allocations whose time limit is reached, at the instant at which it is.

The instant follows from what is stored, so a scheduler that takes over ends them at the same one.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Final

import structlog

from libs.clock import Clock
from libs.db.engine import Database
from libs.db.prepared.statements import PreparedStatement
from libs.telemetry import counter
from services.scheduler.allocations.reconciler import AllocationReconciler
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()

CHECK_S: Final = 5.0
"""How often it is looked whose time ends before the next look; a limit that is shorter may end so much later."""
TIME_UP: Final = counter("resolute_scheduler_time_limits_total", "Allocations that reached their time limit", "pool")
_DUE: Final = PreparedStatement("""
    SELECT allocation_id, pool, ends_at FROM (
        SELECT allocation_id, pool,
               start_time + make_interval(secs => greatest(time_limit_s - ran_before_s, 0)) AS ends_at
        FROM allocations
        WHERE released_at IS NULL AND time_limit_s IS NOT NULL AND start_time IS NOT NULL
          AND preempted_at IS NULL AND killed_at IS NULL
    ) AS limited
    WHERE ends_at <= :until::timestamptz ORDER BY ends_at, allocation_id
""")


class OverdueAllocations:
    def __init__(self, *, db: Database, clock: Clock, allocations: AllocationReconciler) -> None:
        self._db = db
        self._clock = clock
        self._allocations = allocations
        self._look_on = asyncio.Event()

    async def run(self) -> None:
        """Look until cancelled."""
        await run_periodically("time limits", self.look, every_s=CHECK_S, wake=self._look_on)

    async def look(self) -> list[str]:
        """End those whose time is up before the next look, each in its moment; returns their allocations."""
        due = await self._due(self._clock.now() + timedelta(seconds=CHECK_S))
        for allocation, pool, ends_at in due:
            await asyncio.sleep(max((ends_at - self._clock.now()).total_seconds(), 0.0))
            if await self._allocations.end_in_time(allocation):
                log.info("allocation.time_is_up", allocation=allocation, ends_at=str(ends_at))
                TIME_UP.labels(pool).inc()
        if due:
            self._look_on.set()  # the time that this has taken belongs to the pause
        return [allocation for allocation, _, _ in due]

    async def _due(self, until: datetime) -> list[tuple[str, str, datetime]]:
        async with self._db.read() as connection:
            rows = await _DUE.rows(connection, until=until)
        return [(row["allocation_id"], row["pool"], row["ends_at"]) for row in rows]
