"""Fits pods to nodes: the room left on each, kept sorted so that ten thousand nodes are searched in no time.

Best fit fills the fullest node that still has room, which keeps whole nodes free for large pods; worst fit spreads.
Source: docs/reference/scheduling.md 4.2 and 4.3. NodeSlots names break ties.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from enum import Enum, auto

from services.scheduler.plan.snapshot import FittingPolicy, NodeSlots, PoolSnapshot


class Room:
    """Units (slots, or places for auxiliary pods) left per node. Changes as pods are placed."""

    def __init__(self, left_by_node: Mapping[str, int], policy: FittingPolicy) -> None:
        # Sorted by what is left, the node to be preferred first among equals: names ascend when read upwards, and for
        # worst fit, which reads downwards from the emptiest, they have to descend.
        self._worst = policy == "worst"
        self._left = dict(left_by_node)
        self._names = sorted(left_by_node, reverse=self._worst)
        self._rank = {name: rank for rank, name in enumerate(self._names)}
        self._sorted = sorted((left, self._rank[name]) for name, left in left_by_node.items())
        self._nodes_by_left = Counter(left_by_node.values())

    def find(self, need: int, excluded: Collection[str] = ()) -> str | None:
        """The node that the policy prefers among those with ``need`` units left, or None."""
        first = bisect_left(self._sorted, (need, 0))
        for index in self._candidates(first):
            name = self._names[self._sorted[index][1]]
            if name not in excluded:
                return name
        return None

    def count(self, need: int, excluded: Collection[str] = ()) -> int:
        """How many times ``need`` units can be taken, each time from one node.

        Quick, as ten thousand nodes differ little in what is left.
        """
        found = sum(left // need * nodes for left, nodes in self._nodes_by_left.items() if left >= need)
        return found - sum(max(self._left.get(name, 0), 0) // need for name in set(excluded))

    def _candidates(self, first: int) -> Iterator[int]:
        end = len(self._sorted)
        return iter(range(end - 1, first - 1, -1) if self._worst else range(first, end))

    def take(self, node: str, units: int) -> None:
        rank = self._rank[node]
        left = self._left[node]
        del self._sorted[bisect_left(self._sorted, (left, rank))]
        self._left[node] = left - units
        self._nodes_by_left[left] -= 1
        self._nodes_by_left[left - units] += 1
        insort(self._sorted, (left - units, rank))


class Occupancy(Enum):
    """Which room is meant."""

    AS_IT_IS = auto()
    """What is left on the nodes where something may start."""
    EMPTY = auto()
    """What there would be on them if nothing ran."""
    ALL_IN_SERVICE = auto()
    """What there would be if nothing ran, and every node was in service."""


def slot_room(pool: PoolSnapshot, occupancy: Occupancy = Occupancy.AS_IT_IS) -> Room:
    """Slots."""
    as_it_is = occupancy is Occupancy.AS_IT_IS
    left = {node.name: node.slots - (node.lent if as_it_is else 0) for node in _nodes(pool, occupancy)}
    for node, slots in _held_pods(pool, occupancy):
        if node in left:
            left[node] -= slots
    return Room(left, pool.fitting)


def aux_room(pool: PoolSnapshot, occupancy: Occupancy = Occupancy.AS_IT_IS) -> Room:
    """Places for pods without slots."""
    left = {node.name: node.max_aux for node in _nodes(pool, occupancy)}
    for node, slots in _held_pods(pool, occupancy):
        if node in left and not slots:
            left[node] -= 1
    return Room(left, pool.fitting)


def _nodes(pool: PoolSnapshot, occupancy: Occupancy) -> Iterator[NodeSlots]:
    return (node for node in pool.nodes or () if node.available or occupancy is Occupancy.ALL_IN_SERVICE)


def _held_pods(pool: PoolSnapshot, occupancy: Occupancy) -> Iterator[tuple[str, int]]:
    held = pool.held if occupancy is Occupancy.AS_IT_IS else ()
    return (pod for one in held for pod in one.pods)
