"""Has work leave the nodes of maintenance windows in time. It looks now and then, and needs no memory: who has to leave
follows from what is stored."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from libs.clock import Clock
from libs.db.engine import Connection, Database
from libs.db.tables.tasks import allocations
from libs.maintenance.rows import windows_ahead
from libs.maintenance.windows import MaintenanceWindow
from services.scheduler.allocations.maintenance import CHECK_S, reason_to_leave
from services.scheduler.allocations.reconciler import AllocationReconciler
from services.scheduler.transactions.rows import AllocationRow, columns_of, row_of
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()
_HOLDS: Final = (
    allocations.c.released_at.is_(None),
    allocations.c.assigned_at.is_not(None),
    allocations.c.killed_at.is_(None),
    allocations.c.preempted_at.is_(None),
)


class MaintenanceClearing:
    """``plan_binds``: pods go where the planner saw room for them."""

    def __init__(self, *, db: Database, clock: Clock, allocations: AllocationReconciler, plan_binds: bool) -> None:
        self._db = db
        self._clock = clock
        self._allocations = allocations
        self._plan_binds = plan_binds

    async def run(self) -> None:
        """Look until cancelled."""
        await run_periodically("maintenance", self.look, every_s=CHECK_S, wake=asyncio.Event())

    async def look(self) -> list[str]:
        """Have those leave that have to by now; returns their allocations."""
        now = self._clock.now()
        async with self._db.read() as connection:
            windows = await windows_ahead(connection, now)
            rows = await self._those_who_may_be_due(connection, windows) if windows else []
        due = [
            row.allocation_id
            for row in rows
            if reason_to_leave(row, windows, now=now, plan_binds=self._plan_binds) is not None
        ]

        def why(row: AllocationRow) -> str | None:
            return reason_to_leave(row, windows, now=self._clock.now(), plan_binds=self._plan_binds)

        for allocation in due:
            log.info("allocation.in_the_way_of_maintenance", allocation=allocation)
            await self._allocations.have_leave(allocation, why)
        return due

    async def _those_who_may_be_due(
        self, connection: Connection, windows: list[MaintenanceWindow]
    ) -> list[AllocationRow]:
        """What holds slots, without those that are asked only long from now."""
        left = windows[0].starts_at - self._clock.now() - timedelta(seconds=CHECK_S)
        query = columns_of(AllocationRow).where(*_HOLDS, allocations.c.preemption_timeout_s >= left.total_seconds())
        found = await connection.execute(query.order_by(allocations.c.allocation_id))
        return [row_of(AllocationRow, row) for row in found.mappings()]
