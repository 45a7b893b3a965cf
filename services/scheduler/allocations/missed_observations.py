"""Asks launchers for observations that may have been missed.

Observations are events, and events can be missed: while nobody scheduled for longer than they are kept, or when
somebody changed the consumer that they wait in. What launchers see is a level, so they are asked to report it again: at
the start, after a gap, and of allocations that have been silent for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec
import structlog
from sqlalchemy import select

from libs.bus import Bus
from libs.db.engine import Database
from libs.db.tables.tasks import allocations
from libs.errors import ResoluteError
from libs.events import subjects
from libs.events.observation_requests import REPORT_AGAIN, ReportAgainRequest
from services.scheduler.allocations.silent_allocations import SilentAllocations
from services.scheduler.settings import EngineSettings
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()

AT_ONCE: Final = 5000
"""Allocations in one request, which then has less than half the size that a server takes unless configured."""


class MissedObservations:
    """Keeps asking for what was missed while it runs."""

    def __init__(self, *, db: Database, bus: Bus, settings: EngineSettings) -> None:
        self._db = db
        self._bus = bus
        self._settings = settings
        self._silent = SilentAllocations(settings.silence_s)
        self._due = asyncio.Event()

    def on_gap(self) -> None:
        """Ask about everything, as something may have been missed."""
        self._silent.assume_all()
        self._due.set()

    async def run(self) -> None:
        """Ask until cancelled; launchers that do not answer are asked again."""
        await run_periodically("missed observations", self._ask, every_s=self._settings.resync_s, wake=self._due)

    async def _ask(self) -> None:
        columns = allocations.c
        live = select(columns.allocation_id, columns.pool, columns.revision).where(
            columns.released_at.is_(None), columns.assigned_at.is_not(None)
        )
        async with self._db.read() as connection:
            rows = {row.allocation_id: row for row in await connection.execute(live)}
        heard_by_pool: dict[str, dict[str, int]] = {}
        now = asyncio.get_running_loop().time()
        for ident in self._silent.since_long({ident: row.revision for ident, row in rows.items()}, now):
            heard_by_pool.setdefault(rows[ident].pool, {})[ident] = rows[ident].revision
        for pool, heard in heard_by_pool.items():
            await self._ask_launcher(pool, heard)

    async def _ask_launcher(self, pool: str, heard: Mapping[str, int]) -> None:
        idents = list(heard)
        for start in range(0, len(idents), AT_ONCE):
            part = idents[start : start + AT_ONCE]
            request = ReportAgainRequest(heard={ident: heard[ident] for ident in part})
            try:
                await self._bus.request(subjects.launcher_rpc(pool, REPORT_AGAIN), msgspec.json.encode(request))
            except ResoluteError as error:
                # It is away, or older than the request; when it comes back it reports everything by itself.
                log.info("launcher.observations_not_requested", pool=pool, allocations=len(part), error=str(error))
                return
            now = asyncio.get_running_loop().time()
            for ident in part:
                self._silent.answered(ident, now)
