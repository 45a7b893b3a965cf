"""Ends notebooks and TensorBoards that nobody has used for as long as they may be idle.

Use is what the proxy and the notebooks themselves write to ``interactive_tasks.last_active_at``. The time counts from
the registration of the service; before, there is nothing to use. Source: docs/reference/tasks-and-cli.md 2.10.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import func, select

from libs.bus import Bus
from libs.clock import Clock
from libs.db.engine import Database
from libs.db.tables.interactive import interactive_tasks
from libs.db.tables.tasks import allocations, tasks
from libs.errors import Unavailable
from libs.events import subjects
from libs.tasks.interactive.idle import idle_reason, is_idle
from libs.telemetry import counter
from services.scheduler.allocations.reconciler import AllocationReconciler
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()

CHECK_S: Final = 5.0
"""How often it is looked (2.10)."""
IDLE_ENDED: Final = counter("resolute_scheduler_idle_ended_total", "Tasks ended because nobody used them", "type")


async def api_notes_use(bus: Bus) -> bool:
    """Whether some api answers."""
    try:
        await bus.request(subjects.NOTES_USE, b"")
    except Unavailable as error:
        log.info("tasks.use_not_noted", error=str(error))
        return False
    return True


class IdleEnding:
    """Looks now and then. After an outage it ends nothing until those who use a task could say so.

    use_is_noted  whether there is an api now that would know
    grace_s       how long they get to say so
    """

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        allocations: AllocationReconciler,
        use_is_noted: Callable[[], Awaitable[bool]],
        grace_s: float,
    ) -> None:
        self._db = db
        self._use_is_noted = use_is_noted
        self._clock = clock
        self._allocations = allocations
        self._grace = timedelta(seconds=grace_s)
        self._not_before: datetime | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        await run_periodically("idle tasks", self.look, every_s=CHECK_S, wake=asyncio.Event())

    async def look(self) -> list[str]:
        """End what is idle; returns its allocations."""
        # Set again at the end: a look that does not get there begins the grace anew.
        not_before, self._not_before = self._not_before, None
        now = self._clock.now()
        not_before = not_before or now + self._grace
        columns = allocations.c
        watched = (
            select(
                columns.allocation_id,
                tasks.c.task_type,
                interactive_tasks.c.idle_timeout_s,
                func.coalesce(interactive_tasks.c.last_active_at, columns.start_time).label("last_active_at"),
            )
            .join(tasks, tasks.c.task_id == columns.task_id)
            .join(interactive_tasks, interactive_tasks.c.task_id == columns.task_id)
            .where(
                interactive_tasks.c.idle_timeout_s.is_not(None),
                columns.released_at.is_(None),
                columns.killed_at.is_(None),
                columns.start_time.is_not(None),
                # Where a gateway stands before the pods, their addresses come with them and are not reported.
                columns.proxy_address.is_not(None) | columns.pods.contains([{"proxied": [{}]}]),
            )
        )
        async with self._db.read() as connection:
            rows = list(await connection.execute(watched))
        idle = [row for row in rows if is_idle(row.last_active_at, row.idle_timeout_s, now=now, not_before=not_before)]
        if idle and not await self._use_is_noted():
            return []
        for row in idle:
            log.info("task.idle", allocation=row.allocation_id, last_active_at=str(row.last_active_at))
            await self._allocations.kill(row.allocation_id, reason=idle_reason(row.idle_timeout_s))
            IDLE_ENDED.labels(row.task_type.lower()).inc()
        self._not_before = not_before
        return [row.allocation_id for row in idle]
