"""The capacity of every pool as its launcher last published it: a copy of the KV bucket, kept up to date by a watch."""

from __future__ import annotations

from contextlib import aclosing

import msgspec
import structlog

from libs.bus import Bus, SnapshotEnd
from libs.events import subjects
from libs.events.capacity import PoolCapacity

log = structlog.get_logger()


class CapacityView:
    """Pool name -> what it could run. A pool whose launcher was never seen is absent."""

    def __init__(self) -> None:
        self._by_key: dict[str, PoolCapacity] = {}

    def of(self, pool: str) -> PoolCapacity | None:
        return self._by_key.get(subjects.capacity_key(pool))

    def all(self) -> list[PoolCapacity]:
        """Every pool that has one, by name."""
        return sorted(self._by_key.values(), key=lambda capacity: capacity.pool)

    async def follow(self, bus: Bus) -> None:
        """Keep the copy until cancelled."""
        async with aclosing(bus.bucket(subjects.CAPACITY_BUCKET).watch(">")) as changes:
            async for change in changes:
                if isinstance(change, SnapshotEnd):
                    for key in self._by_key.keys() - change.keys:
                        del self._by_key[key]
                elif change.value is None:
                    self._by_key.pop(change.key, None)
                else:
                    self._put(change.key, change.value)

    def _put(self, key: str, value: bytes) -> None:
        try:
            self._by_key[key] = msgspec.json.decode(value, type=PoolCapacity)
        except msgspec.DecodeError as error:
            # One launcher that speaks another language must not blind the api to all the others.
            log.warning("capacity.unreadable", key=key, error=str(error))
