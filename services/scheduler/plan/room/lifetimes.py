"""For how much longer each node is expected to be busy, as a power of two of seconds (``magnitude``).

A pod that fits equally well on several nodes gets one that is busy anyway for as long as it will run; where there is
none, the one that is busy longest. So what ends at about the same time is together, and nodes become empty as a whole,
which is what large pods and gangs wait for.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from services.scheduler.plan.ordering.backfill import UNKNOWN_RUN
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots

_SECOND: Final = timedelta(seconds=1)
EMPTY: Final = 0


class Lifetimes:
    def __init__(self, held: Iterable[HeldAllocation] = (), nodes: Iterable[NodeSlots] = (), *, now: datetime) -> None:
        """Counts ``held`` pods with slots and what of ``nodes`` is lent, but not those that leave."""
        self._busy = {node.name: _magnitude(UNKNOWN_RUN) for node in nodes if node.lent}
        for one in held:
            if not one.leaving and one.pods:
                busy = _magnitude(_left(one, now))
                for node, slots in one.pods:
                    if slots and busy > self._busy.get(node, EMPTY):
                        self._busy[node] = busy

    def of(self, node: str) -> int:
        """``EMPTY`` where nothing runs."""
        return self._busy.get(node, EMPTY)

    def start(self, node: str, lasts: int) -> None:
        """Something starts there that is expected to run for that long."""
        if lasts > self._busy.get(node, EMPTY):
            self._busy[node] = lasts


def prolonged(busy: int, lasts: int) -> int:
    """By how much a node is busy longer for the sake of a pod; 0 where it would be anyway.

    An empty node is as full as a busy one only where it is smaller: then neither is better.
    """
    return 0 if busy == EMPTY else max(lasts - busy, 0)


def _left(one: HeldAllocation, now: datetime) -> timedelta:
    """A run that outlives what was expected is expected to take twice as long, as often as that is needed."""
    run, ran = one.expected, max(now - one.started_at, timedelta())
    if run is None:
        run = UNKNOWN_RUN if one.ends_at is None else one.ends_at - one.started_at
    run = max(run, _SECOND)
    while run <= ran:
        run *= 2
    left = run - ran
    return left if one.ends_at is None else min(left, one.ends_at - now)


def _magnitude(time: timedelta) -> int:
    """At least that of a second: the node is not empty."""
    return max(time // _SECOND, 1).bit_length()
