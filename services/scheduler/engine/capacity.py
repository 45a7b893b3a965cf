"""What the pools have, as their launchers last said; the newest value per pool, from the bucket ``CAPACITY``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

import msgspec
import structlog

from libs.bus import Bus, SnapshotEnd
from libs.events import subjects
from libs.events.capacity import PoolCapacity

log = structlog.get_logger()


class CapacityView:
    """``changed`` is called with the name of a pool whose capacity is another than before."""

    def __init__(self, *, bus: Bus, changed: Callable[[str], None]) -> None:
        self._bus = bus
        self._changed = changed
        self._by_key: dict[str, PoolCapacity] = {}

    def of(self, pool: str) -> PoolCapacity | None:
        """None while the launcher of the pool has not said anything."""
        return self._by_key.get(subjects.capacity_key(pool))

    async def run(self) -> None:
        """Follow the bucket until cancelled."""
        async with aclosing(self._bus.bucket(subjects.CAPACITY_BUCKET).watch()) as changes:
            async for change in changes:
                if isinstance(change, SnapshotEnd):
                    for key in self._by_key.keys() - change.keys:
                        self._forget(key)
                elif change.value is None:
                    self._forget(change.key)
                else:
                    self._learn(change.key, change.value)

    def _learn(self, key: str, value: bytes) -> None:
        try:
            capacity = msgspec.json.decode(value, type=PoolCapacity)
        except msgspec.DecodeError as error:
            log.error("capacity.unreadable", key=key, error=str(error))
            return
        self._by_key[key] = capacity
        self._changed(capacity.pool)

    def _forget(self, key: str) -> None:
        gone = self._by_key.pop(key, None)
        if gone is not None:
            self._changed(gone.pool)
