"""What nodes offer to a request whose pods need not be alike, the largest pods first.

Nodes that are alike stand together in a room, and are looked at one by one only as far as somebody takes what they
offer: of ten thousand nodes those that matter are found among a few dozen kinds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush, merge
from itertools import groupby
from typing import Final

from msgspec import Struct

from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.room.lifetimes import prolonged
from services.scheduler.plan.room.room import Key, Room, hash_of, nearest_first
from services.scheduler.plan.topology.domain_use import Preference

_Like = tuple[int, float, int, Preference]
"""Minus the slots of each pod, the score of the node, by how much it is busy longer, and the preference of its domains:
what is smaller is first."""
_PODS: Final = 0
"""Of a node that has not been looked at yet."""


class NodeOffer(Struct, frozen=True, gc=False, order=True):
    """A node: so many pods of so many slots could run there. What is smaller is taken first."""

    minus_slots: int
    score: float
    longer: int
    in_use: Preference
    distance: int
    node: str
    pods: int

    @property
    def slots(self) -> int:
        return -self.minus_slots


class NodeOffers:
    """What the nodes of ``room`` offer that have room for a pod of ``demand``. The room must not change meanwhile.

    lasts  magnitude of how long the pods are expected to run
    """

    def __init__(self, room: Room, demand: Demand, allocation: str, lasts: int) -> None:
        self._room = room
        self._demand = demand
        self._wanted = hash_of(allocation)
        self._lasts = lasts

    def __iter__(self) -> Iterator[NodeOffer]:
        """All of them in order."""
        lacking: list[NodeOffer] = []  # they lack something beside slots, and so offer less than others of their kind
        for seen in self._by_slots():
            while lacking and lacking[0] < seen:
                yield heappop(lacking)
            found = self._looked_at(seen)
            if found is None:
                continue
            if found.minus_slots == seen.minus_slots:
                yield found
            else:
                heappush(lacking, found)
        while lacking:
            yield heappop(lacking)

    def best_for(self, slots: int, taken: Collection[str]) -> str | None:
        """The node that the policy prefers for one pod of so many slots, among those that are not ``taken``."""
        for _, keys in groupby(self._kinds(slots), key=lambda key: key[0]):
            found = (self._first(self._like(0, key), key, slots, taken) for key in keys)
            best = min(
                ((one.longer, one.in_use, one.distance, one.node) for one in found if one is not None), default=None
            )
            if best is not None:
                return best[3]
        return None

    def _first(self, like: _Like, key: Key, slots: int, taken: Collection[str]) -> NodeOffer | None:
        """The nearest of a kind that has so many."""
        for seen in self._of_kind(like, key):
            found = None if seen.node in taken else self._looked_at(seen)
            if found is not None and found.slots >= slots:
                return found
        return None

    def _by_slots(self) -> Iterator[NodeOffer]:
        """All nodes in order, as far as slots go; they have not been looked at."""
        demand, kinds = self._demand, list[tuple[_Like, Key]]()
        for key in self._kinds(1):
            slots = min(demand.places_in(key[1]), demand.most)
            kinds.append((self._like(slots, key), key))
        kinds.sort()
        for like, tied in groupby(kinds, key=lambda kind: kind[0]):
            yield from merge(*(self._of_kind(like, key) for _, key in tied))

    def _kinds(self, slots: int) -> Iterator[Key]:
        """Kinds of nodes with so many for a pod, those that the policy prefers first."""
        demand, groups = self._demand, self._demand.groups
        for key in self._room.kinds():
            if demand.places_in(key[1]) >= slots and (groups is None or key[2] in groups):
                yield key

    def _like(self, slots: int, key: Key) -> _Like:
        return -slots, key[0], prolonged(key[3], self._lasts), self._room.in_use(key[4])

    def _of_kind(self, like: _Like, key: Key) -> Iterator[NodeOffer]:
        for distance, node in nearest_first(self._room.alike(key), self._wanted):
            yield NodeOffer(*like, distance, node, _PODS)

    def _looked_at(self, seen: NodeOffer) -> NodeOffer | None:
        if not self._demand.allows(seen.node):
            return None
        places = self._room.pods_on(seen.node, self._demand)
        if not places:
            return None
        slots = min(places, self._demand.most)
        return NodeOffer(-slots, seen.score, seen.longer, seen.in_use, seen.distance, seen.node, places // slots)
