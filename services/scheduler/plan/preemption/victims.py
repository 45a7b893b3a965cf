"""Chooses whom to preempt for a request: no more than make room for all of its pods on nodes that it may use.

Those of least importance go first, then those that lose least work (slots times the time since their last checkpoint),
then the smallest, then those furthest behind in the queue. What turns out not to be needed is spared again, so that
each place that is taken is one that the request uses.
Source: docs/reference/scheduling.md 5.4, whose victims are neither pruned nor weighed (15).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from services.scheduler.plan.ordering.ranking import Rank
from services.scheduler.plan.snapshot import HeldAllocation


class PossibleVictim(Struct, frozen=True, gc=False):
    """A running allocation that may be asked to leave."""

    held: HeldAllocation
    rank: Rank
    lost_s: float
    """Slot-seconds of work that would be lost."""


def candidates(
    held: Iterable[HeldAllocation], rank: Callable[[HeldAllocation], Rank], now: datetime
) -> list[PossibleVictim]:
    """In the order in which they are to be asked."""
    found = [PossibleVictim(one, rank(one), _lost_s(one, now)) for one in held]
    found.sort(key=lambda one: one.rank[1:], reverse=True)
    found.sort(key=lambda one: (-one.rank[0], one.lost_s, one.held.slots))
    return found


def choose(
    in_order: Iterable[PossibleVictim], *, need: int, pods: int, left: Callable[[str], int | None], count: int
) -> tuple[PossibleVictim, ...] | None:
    """The least of ``in_order`` whose leaving makes room for ``pods`` pods of ``need`` units each; None if all are not
    enough.

    left   units of a node that are free, or come free anyway; None of one that the request may not use
    count  pods that have room in those
    """
    places = _Places(need, left, count)
    chosen: list[PossibleVictim] = []
    for candidate in in_order:
        if places.give(candidate.held.pods):
            chosen.append(candidate)
            if places.count >= pods:
                return _spared(chosen, places, pods)
    return None


def _spared(chosen: Sequence[PossibleVictim], places: _Places, pods: int) -> tuple[PossibleVictim, ...]:
    """Those without whom there is no room, the dearest spared first."""
    needed: list[PossibleVictim] = []
    for candidate in reversed(chosen):
        places.take(candidate.held.pods)
        if places.count < pods:
            places.give(candidate.held.pods)
            needed.append(candidate)
    return tuple(reversed(needed))


class _Places:
    """How many pods have room, as allocations leave one after the other."""

    def __init__(self, need: int, left: Callable[[str], int | None], count: int) -> None:
        self._need = need
        self._left = left
        self._given: Counter[str] = Counter()
        self.count = count

    def give(self, pods: Iterable[tuple[str, int]]) -> bool:
        """Whether any of the nodes matters."""
        return self._change(pods, 1)

    def take(self, pods: Iterable[tuple[str, int]]) -> None:
        self._change(pods, -1)

    def _change(self, pods: Iterable[tuple[str, int]], sign: int) -> bool:
        matters = False
        for node, slots in pods:
            left = self._left(node)
            if left is None:
                continue
            matters = True
            before = left + self._given[node]
            after = before + sign * (slots or 1)
            self._given[node] = after - left
            self.count += max(after, 0) // self._need - max(before, 0) // self._need
        return matters


def _lost_s(held: HeldAllocation, now: datetime) -> float:
    since = held.started_at if held.saved_at is None else max(held.saved_at, held.started_at)
    return held.slots * max((now - since).total_seconds(), 0.0)
