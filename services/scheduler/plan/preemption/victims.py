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

from services.scheduler.plan.nodes.amounts import Amounts
from services.scheduler.plan.ordering.ranking import Rank
from services.scheduler.plan.room.demand import Demand, beside_slots
from services.scheduler.plan.room.ledger import Ledger
from services.scheduler.plan.room.room import Room
from services.scheduler.plan.snapshot import HeldAllocation


class PossibleVictim(Struct, frozen=True, gc=False):
    """A running allocation that may be asked to leave."""

    held: HeldAllocation
    rank: Rank
    lost_s: float
    """Slot-seconds of work that would be lost."""
    requests: Amounts
    """Of each pod, beside its slots."""


def candidates(
    held: Iterable[HeldAllocation], rank: Callable[[HeldAllocation], Rank], now: datetime
) -> list[PossibleVictim]:
    """In the order in which they are to be asked."""
    found = [PossibleVictim(one, rank(one), lost_s(one, now), beside_slots(one.needs)) for one in held]
    found.sort(key=lambda one: one.rank[1:], reverse=True)
    found.sort(key=lambda one: (-one.rank[0], one.lost_s, one.held.slots))
    return found


def choose(in_order: Iterable[PossibleVictim], demand: Demand, later: Room) -> tuple[PossibleVictim, ...] | None:
    """The least of ``in_order`` whose leaving makes room for all pods of ``demand``, or for equal ones where it may be
    divided; None if all are not enough.

    later  what is free, or comes free anyway
    """
    if not demand.equal:
        return _choose(in_order, demand, later)
    offered = tuple(in_order)
    found = (_choose(offered, one, later) for one in (demand, *demand.equal))
    return next((one for one in found if one is not None), None)


def _choose(in_order: Iterable[PossibleVictim], demand: Demand, later: Room) -> tuple[PossibleVictim, ...] | None:
    places = Places(demand, later, later.count(demand))
    chosen: list[PossibleVictim] = []
    for candidate in in_order:
        if places.give(candidate):
            chosen.append(candidate)
            if places.count >= demand.pods:
                return spared(chosen, places, demand.pods)
    return None


def spared(chosen: Sequence[PossibleVictim], places: Places, pods: int) -> tuple[PossibleVictim, ...]:
    """Those without whom there is no room, the dearest spared first."""
    needed: list[PossibleVictim] = []
    for candidate in reversed(chosen):
        places.take(candidate)
        if places.count < pods:
            places.give(candidate)
            needed.append(candidate)
    return tuple(reversed(needed))


class Places:
    """How many pods have room, as allocations leave one after the other."""

    def __init__(self, demand: Demand, later: Room, count: int) -> None:
        """``count`` of them have room before anybody leaves."""
        self._demand = demand
        self._later = later
        self._left = later.by_node()
        self._need = demand.units
        self._units: dict[str, int | None] = {}
        """Units left by now on the nodes of those who were looked at; None where it may not run."""
        self._given: Counter[str] = Counter()
        self._others = Ledger()
        self._pods: dict[str, int] = {}
        """How many find both on nodes where somebody has left."""
        self.count = count

    def give(self, one: PossibleVictim) -> bool:
        """Whether any of the nodes matters."""
        return self._change(one, 1)

    def take(self, one: PossibleVictim) -> None:
        self._change(one, -1)

    def _change(self, one: PossibleVictim, sign: int) -> bool:
        matters, demand, need = False, self._demand, self._need
        known = self._units
        for node, slots in one.held.pods:
            if node in known:
                before = known[node]
            else:
                before = known[node] = self._left.get(node) if demand.allows(node) else None
            if before is None:
                continue
            matters = True
            units = sign * (slots or 1)
            if demand.requests:
                self.count += self._with_others(node, units, one, sign)
                continue
            after = known[node] = before + units
            if demand.most:
                self.count += demand.places_in(after) - demand.places_in(before)
                continue
            if after >= need:
                self.count += after // need
            if before >= need:
                self.count -= before // need
        return matters

    def _with_others(self, node: str, units: int, one: PossibleVictim, sign: int) -> int:
        """How many pods more find units and everything else there."""
        before = self._pods.get(node)
        if before is None:
            before = self._later.pods_on(node, self._demand)
        self._given[node] += units
        self._others.add(node, one.requests, sign)
        after = self._later.pods_on(node, self._demand, self._given[node], self._others.of(node))
        self._pods[node] = after
        return after - before


def lost_s(held: HeldAllocation, now: datetime) -> float:
    """Slot-seconds of work that are lost if it leaves now without saving."""
    since = held.started_at if held.saved_at is None else max(held.saved_at, held.started_at)
    return held.slots * max((now - since).total_seconds(), 0.0)
