"""The capacity of every pool as its launcher last published it: a copy of the KV bucket, kept up to date by a watch."""

from __future__ import annotations

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
        seen: set[str] = set()
        async for change in bus.bucket(subjects.CAPACITY_BUCKET).watch(">"):
            if isinstance(change, SnapshotEnd):
                for key in self._by_key.keys() - seen:
                    del self._by_key[key]
                seen = set()
            elif change.value is None:
                self._by_key.pop(change.key, None)
            else:
                seen.add(change.key)
                self._by_key[change.key] = msgspec.json.decode(change.value, type=PoolCapacity)
