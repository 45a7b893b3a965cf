"""What shares have used of a pool that remembers it, in a replay: it grows with what runs, and is forgotten by its
half-life. What is held at a plan is taken to be held until the next one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from libs.slot_hours.decay import decayed
from services.scheduler.plan.ordering.fair_share import owner_of
from services.scheduler.plan.snapshot import HeldAllocation, PoolSnapshot


class PastUse:
    def __init__(self, snapshot: PoolSnapshot) -> None:
        self._half_life = snapshot.half_life
        self._used = snapshot.past_use
        self._at = snapshot.now
        self._held: Mapping[str, int] = {}

    def go_on(self, held: Iterable[HeldAllocation], now: datetime) -> Mapping[str, float]:
        """By the paths of shares, at ``now``, when ``held`` is held from then on."""
        if self._half_life is None:
            return self._used
        after, before = now - self._at, self._held
        self._used = {
            path: decayed(self._used.get(path, 0.0), after, self._half_life, held=before.get(path, 0))
            for path in sorted({*self._used, *before})
        }
        self._at, self._held = now, slots_by_share(held)
        return self._used


def slots_by_share(held: Iterable[HeldAllocation]) -> Counter[str]:
    """Slots of each share above jobs, by its path."""
    found: Counter[str] = Counter()
    for one in held:
        path = owner_of(one)
        while path := path.rpartition("/")[0]:
            found[path] += one.slots
    return found
