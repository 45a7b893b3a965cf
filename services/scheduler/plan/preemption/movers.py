"""Chooses what is moved for a request: node by node, those whose leaving opens one more place at the least cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct

from services.scheduler.plan.nodes.amounts import Amounts
from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.room.ledger import Ledger
from services.scheduler.plan.room.room import Room

_NODES: Final = 200
"""Nodes that are looked at for one request: those that lack least."""
_PER_NODE: Final = 32
"""Of each, the cheapest that could be moved."""


class Mover(Struct, frozen=True, gc=False):
    """A running allocation that could be moved."""

    name: str
    lost_s: float
    """Slot-seconds of work that would be lost."""
    slots: int
    pods: tuple[tuple[str, int], ...]
    """In the order of their nodes."""
    requests: Amounts
    """Of each pod, beside its slots."""

    @property
    def cost(self) -> tuple[float, int]:
        return self.lost_s, self.slots


_Cost = tuple[float, int]
_Offer = tuple[_Cost, int, str, int, list[Mover]]
"""Cost, units that the node lacks, its name, how many offers of it there were before, and who would be moved."""


def cheapest(movers: Sequence[Mover], demand: Demand, later: Room) -> tuple[Mover, ...] | None:
    """Those of ``movers`` without which all pods of ``demand`` have room; None where that is found of none.

    movers  in the order of their cost
    later   what is free, or comes free anyway
    """
    search = _Search(movers, demand, later)
    offers = [offer for node in search.nodes() if (offer := search.offer(node)) is not None]
    heapify(offers)
    while search.count < demand.pods and offers:
        offer = heappop(offers)
        if search.is_stale(offer):
            continue
        for node in search.take(offer):
            if (anew := search.offer(node)) is not None:
                heappush(offers, anew)
    return search.spared() if search.count >= demand.pods else None


class _Search:
    def __init__(self, movers: Sequence[Mover], demand: Demand, later: Room) -> None:
        self._demand = demand
        self._later = later
        self._on: defaultdict[str, list[Mover]] = defaultdict(list)
        for one in movers:
            for node in dict.fromkeys(node for node, _ in one.pods):
                if len(self._on[node]) < _PER_NODE and demand.allows(node):
                    self._on[node].append(one)
        self._given: Counter[str] = Counter()
        self._beside = Ledger()
        self._chosen: dict[str, Mover] = {}
        self._offered: Counter[str] = Counter()
        self.count = later.count(demand)

    def nodes(self) -> list[str]:
        known = self._later.by_node()
        here = [(self._lacking(node), node) for node in self._on if node in known]
        return [node for _, node in sorted(here)[:_NODES]]

    def offer(self, node: str) -> _Offer | None:
        """The cheapest way to open one more place on ``node``."""
        self._offered[node] += 1
        there = [one for one in self._on[node] if one.name not in self._chosen]
        lacking = self._lacking(node)
        found = _cover(there, node, lacking)
        if found is not None and self._demand.requests and not self._opens(node, found):
            found = next((there[:most] for most in range(1, len(there) + 1) if self._opens(node, there[:most])), None)
        if found is None:
            return None
        cost = (sum(one.lost_s for one in found), sum(one.slots for one in found))
        return cost, lacking, node, self._offered[node], found

    def is_stale(self, offer: _Offer) -> bool:
        return offer[3] != self._offered[offer[2]]

    def take(self, offer: _Offer) -> list[str]:
        """Move those of ``offer``; the nodes that are to be looked at again."""
        for one in offer[4]:
            self._chosen[one.name] = one
            self._change(one, 1)
        touched = {node for one in offer[4] for node, _ in one.pods}
        return sorted(touched & self._offered.keys())

    def spared(self) -> tuple[Mover, ...]:
        """Who was chosen, without those that are not needed after all, the dearest spared first."""
        needed = []
        for one in sorted(self._chosen.values(), key=lambda one: (*one.cost, one.name), reverse=True):
            self._change(one, -1)
            if self.count < self._demand.pods:
                self._change(one, 1)
                needed.append(one)
        return tuple(reversed(needed))

    def _lacking(self, node: str) -> int:
        """Units until there is one more place."""
        left, need = self._later.left(node) + self._given[node], self._demand.units
        return need - left % need if left >= 0 else need - left

    def _change(self, one: Mover, sign: int) -> None:
        for node, slots in one.pods:
            if node not in self._later.by_node() or not self._demand.allows(node):
                continue
            self.count -= self._pods_on(node)
            self._given[node] += sign * slots
            self._beside.add(node, one.requests, sign)
            self.count += self._pods_on(node)

    def _pods_on(self, node: str) -> int:
        return self._later.pods_on(node, self._demand, self._given[node], self._beside.of(node))

    def _opens(self, node: str, movers: Iterable[Mover]) -> bool:
        """Whether there is a place more without ``movers``, everything counted."""
        movers = list(movers)
        before = self._pods_on(node)
        for one in movers:
            self._change(one, 1)
        opened = self._pods_on(node) > before
        for one in movers:
            self._change(one, -1)
        return opened


def _cover(movers: Iterable[Mover], node: str, lacking: int) -> list[Mover] | None:
    """The cheapest of ``movers`` that have ``lacking`` units of ``node`` together, found exactly."""
    best: dict[int, tuple[_Cost, list[Mover]]] = {0: ((0.0, 0), [])}
    for one in movers:
        units = sum(slots for place, slots in one.pods if place == node)
        for covered, (cost, chosen) in sorted(best.items(), reverse=True):
            if covered == lacking:
                continue
            reached, dearer = min(covered + units, lacking), (cost[0] + one.lost_s, cost[1] + one.slots)
            if reached not in best or dearer < best[reached][0]:
                best[reached] = dearer, [*chosen, one]
    found = best.get(lacking)
    return None if found is None else found[1]
