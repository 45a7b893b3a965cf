"""Watches the gaps of one shard, and decides when to go on without the lines that do not come.

A missing chunk can come as long as its pod has it on disk, so waiting is counted in time in which it could have come.
The clocks begin anew when this replica takes the shard, when bus or database were away, and for a task whose lines an
intake had to send back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from libs.bus import Bus, CoreMessage
from libs.db.connecting.pool import DriverPool
from libs.db.failures import is_connection_failure
from libs.errors import Unavailable
from libs.events import subjects
from services.logs.settings import WriterSettings
from services.logs.writing.parking import overdue_streams, restart_clocks, waiting_streams
from services.logs.writing.store import ONLY_WHAT_IS_READY

log = structlog.get_logger()

_SHORTEST_LOOK_S: Final = 0.1
_LONGEST_LOOK_S: Final = 5.0
_RETRY_S: Final = 1.0

Keep = Callable[[Mapping[str, float]], Awaitable[None]]
"""Stores what can be stored of streams, and gives up their gaps that are older than so many seconds."""


class GapWatch:
    """The clocks of one shard."""

    def __init__(self, *, db: DriverPool, bus: Bus, shard: int, settings: WriterSettings) -> None:
        self._db = db
        self._bus = bus
        self._shard = shard
        self._settings = settings
        self._was_away = True
        self._refused: set[str] = set()

    async def run(self, keep: Keep) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            try:
                async with self._bus.subscribe(subjects.ALL_LOGS_REFUSED, self._on_refused, on_gap=self._on_bus_gap):
                    await self._watch(keep)
            except Unavailable as error:
                log.warning("logs.refusals_subscription_failed", shard=self._shard, error=str(error))
            await asyncio.sleep(_RETRY_S)

    async def _watch(self, keep: Keep) -> None:
        shortest_wait_s = min(self._settings.gap_wait_s, self._settings.gap_wait_ended_s)
        pause_s = min(max(shortest_wait_s / 4, _SHORTEST_LOOK_S), _LONGEST_LOOK_S)
        while True:
            try:
                await self._look(keep)
            except Exception as error:
                if not is_connection_failure(error):
                    raise
                self._was_away = True
                log.warning("logs.gap_check_failed", shard=self._shard, error=str(error))  # the next round finds them
            await asyncio.sleep(pause_s)

    async def _look(self, keep: Keep) -> None:
        if self._was_away or not self._bus.is_connected:
            self._was_away = not self._bus.is_connected
            await restart_clocks(self._db, self._shard)
            # A writer that died between two transactions may have left what is ready.
            waiting = await waiting_streams(self._db, self._shard)
            if waiting:
                await keep(dict.fromkeys(waiting, ONLY_WHAT_IS_READY))
            return
        if self._refused:
            refused, self._refused = self._refused, set()
            await restart_clocks(self._db, self._shard, sorted(refused))
        overdue = await overdue_streams(self._db, self._shard, self._settings)
        if overdue:
            await keep(overdue)

    def _on_bus_gap(self) -> None:
        self._was_away = True

    async def _on_refused(self, message: CoreMessage) -> None:
        task = message.data.decode("utf-8", "replace")
        if subjects.log_shard(task) == self._shard:
            self._refused.add(task)
