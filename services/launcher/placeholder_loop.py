"""Watches the order of a pool's placeholders, and has the backend make it so.

Like the loop of orders it follows from the present state alone, and repeats what failed.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

import msgspec
import structlog

from libs.bus import Bus, KvChange, SnapshotEnd
from libs.errors import ResoluteError
from libs.events.orders import PlaceholderOrder
from libs.events.subjects import ORDERS_BUCKET, placeholders_key
from libs.retry import backoff_s
from libs.waiting import wait_until_set
from services.launcher.backends.protocol import Backend

log = structlog.get_logger()

LOOK_S: Final = 10.0
"""How often the placeholders of an order are looked at: some may have been deleted, and time runs out."""
IDLE_LOOK_S: Final = 300.0
"""The same where there is no order."""


class PlaceholderLoop:
    def __init__(self, *, pool: str, bus: Bus, backend: Backend) -> None:
        self._pool = pool
        self._bus = bus
        self._backend = backend
        self._order: PlaceholderOrder | None = None
        self._look = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            snapshot = asyncio.Event()
            tasks.create_task(self._watch(snapshot), name="placeholder order")
            await snapshot.wait()
            failed = 0
            while True:
                self._look.clear()
                failed = 0 if await self._hold() else failed + 1
                # What could not be removed costs money until it is.
                timeout_s = backoff_s(failed, longest_s=LOOK_S) if failed else self._look_s
                await wait_until_set(self._look, timeout_s=timeout_s)

    @property
    def _look_s(self) -> float:
        return LOOK_S if self._order is not None else IDLE_LOOK_S

    async def _watch(self, snapshot: asyncio.Event) -> None:
        key = placeholders_key(self._pool)
        async with aclosing(self._bus.bucket(ORDERS_BUCKET).watch(key)) as changes:
            async for change in changes:
                if isinstance(change, SnapshotEnd):
                    if key not in change.keys:
                        self._order = None
                    snapshot.set()
                else:
                    self._take_in(change)
                self._look.set()

    def _take_in(self, change: KvChange) -> None:
        if change.value is None:
            self._order = None
            return
        try:
            self._order = msgspec.json.decode(change.value, type=PlaceholderOrder)
        except msgspec.DecodeError as error:
            # Room costs money: what nobody understands is not held.
            log.error("placeholders.unreadable", key=change.key, error=str(error))
            self._order = None

    async def _hold(self) -> bool:
        """Whether the placeholders are as ordered."""
        try:
            await self._backend.hold_room(self._order)
        except ResoluteError as error:
            log.warning("placeholders.not_held", error=str(error))
            return False
        return True
