"""Removes rows and orders that no task needs any more, which would otherwise grow with every task."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from libs.bus import DELETIONS_KEPT_S, Bus
from libs.clock import Clock
from libs.db.audit.search import forget_records
from libs.db.engine import Database
from libs.events import subjects
from libs.tasks.interactive.ended import LISTED
from services.scheduler.deletion.ended_tasks import empty_ended_tasks
from services.scheduler.deletion.old_offers import close_offers
from services.scheduler.deletion.old_sessions import forget_sessions
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()

EVERY_S: Final = 3600.0
PURGED_AT_ONCE: Final = 1000


class Housekeeping:
    """What ended long ago of sessions, interactive tasks and the audit log; what was offered to jobs that have ended;
    deletions of orders that every launcher has seen."""

    def __init__(
        self, *, db: Database, bus: Bus, clock: Clock, sessions_kept_s: float, audit_kept_days: int | None
    ) -> None:
        self._db = db
        self._bus = bus
        self._clock = clock
        self._sessions_kept = timedelta(seconds=sessions_kept_s)
        self._audit_kept = None if audit_kept_days is None else timedelta(days=audit_kept_days)

    async def run(self) -> None:
        """Now and then, until cancelled."""
        await run_periodically("housekeeping", self.tidy, every_s=EVERY_S, wake=asyncio.Event())

    async def tidy(self) -> None:
        forgotten = await forget_sessions(self._db, before=self._clock.now() - self._sessions_kept)
        if forgotten:
            log.info("sessions.forgotten", count=forgotten)
        emptied = await empty_ended_tasks(self._db, before=self._clock.now() - LISTED)
        if emptied:
            log.info("tasks.emptied", count=emptied)
        await close_offers(self._db)
        if self._audit_kept is not None:
            removed = await forget_records(self._db, before=self._clock.now() - self._audit_kept)
            if removed:
                log.info("audit.forgotten", count=removed)
        purged = await self._purge_withdrawals()
        if purged:
            log.info("orders.deletions_purged", count=purged)

    async def _purge_withdrawals(self) -> int:
        before = self._clock.now() - timedelta(seconds=DELETIONS_KEPT_S)
        bucket = self._bus.bucket(subjects.ORDERS_BUCKET)
        purged = 0
        while True:
            some = await bucket.purge_deletions(before=before, most=PURGED_AT_ONCE)
            purged += some
            if some < PURGED_AT_ONCE:
                return purged
