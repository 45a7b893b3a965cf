"""The capacity of every pool as its launcher last said: a copy of the bucket ``CAPACITY``, kept fresh by a watch."""

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
    """Pool name -> what it could run. A pool whose launcher was never seen is absent.

    changed  called with the name of a pool of which something was said, or nothing is known any more
    """

    def __init__(self, *, changed: Callable[[str], None] = lambda _pool: None) -> None:
        self._changed = changed
        self._by_key: dict[str, PoolCapacity] = {}

    def of(self, pool: str) -> PoolCapacity | None:
        """None while the launcher of the pool has not said anything."""
        return self._by_key.get(subjects.capacity_key(pool))

    def all(self) -> list[PoolCapacity]:
        """Every pool that has one, by name."""
        return sorted(self._by_key.values(), key=lambda capacity: capacity.pool)

    async def follow(self, bus: Bus) -> None:
        """Keep the copy until cancelled."""
        async with aclosing(bus.bucket(subjects.CAPACITY_BUCKET).watch()) as changes:
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
            # One launcher that speaks another language must not hide all the others.
            log.error("capacity.unreadable", key=key, error=str(error))
            return
        if subjects.capacity_key(capacity.pool) != key:
            log.error("capacity.not_its_own", key=key, pool=capacity.pool)
            return
        self._by_key[key] = capacity
        self._changed(capacity.pool)

    def _forget(self, key: str) -> None:
        gone = self._by_key.pop(key, None)
        if gone is not None:
            self._changed(gone.pool)
