"""Where a pod fits: the room left on each node, kept sorted so that ten thousand nodes are searched in no time.

Best fit fills the fullest node that still has room, which keeps whole nodes free for large pods; worst fit spreads.
Source: spec/scheduling.md 4.2 and 4.3. Node names break ties.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping

from services.scheduler.plan.snapshot import FittingPolicy, PoolSnapshot


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

    def find(self, need: int, excluded: Collection[str] = ()) -> str | None:
        """The node that the policy prefers among those with ``need`` units left, or None."""
        first = bisect_left(self._sorted, (need, 0))
        for index in self._candidates(first):
            name = self._names[self._sorted[index][1]]
            if name not in excluded:
                return name
        return None

    def _candidates(self, first: int) -> Iterator[int]:
        end = len(self._sorted)
        return iter(range(end - 1, first - 1, -1) if self._worst else range(first, end))

    def take(self, node: str, units: int) -> None:
        """``units`` may be negative, to give back."""
        rank = self._rank[node]
        left = self._left[node]
        del self._sorted[bisect_left(self._sorted, (left, rank))]
        self._left[node] = left - units
        insort(self._sorted, (left - units, rank))


def slot_room(pool: PoolSnapshot, *, empty: bool = False) -> Room:
    """Slots left on the available nodes; all of their slots when ``empty``."""
    left = {node.name: node.slots for node in pool.nodes or () if node.available}
    for node, slots in () if empty else _held_pods(pool):
        if node in left:
            left[node] -= slots
    return Room(left, pool.fitting)


def aux_room(pool: PoolSnapshot, *, empty: bool = False) -> Room:
    """Places for pods without slots left on the available nodes."""
    left = {node.name: node.max_aux for node in pool.nodes or () if node.available}
    for node, slots in () if empty else _held_pods(pool):
        if node in left and not slots:
            left[node] -= 1
    return Room(left, pool.fitting)


def _held_pods(pool: PoolSnapshot) -> Iterator[tuple[str, int]]:
    return (pod for held in pool.held for pod in held.pods)
