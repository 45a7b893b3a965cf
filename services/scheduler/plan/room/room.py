"""Room left on the nodes, kept in order so that the node for a pod is found among ten thousand in no time.

Best fit fills the fullest node that still has room, which keeps whole nodes free for large pods; worst fit takes the
one with the largest part free. Among equals the hash of allocation and node decides, so that what is started again
finds the same node, and what starts beside it another one.
Source: docs/reference/scheduling.md 4.2 and 4.3.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from hashlib import md5
from typing import Final

from services.scheduler.plan.snapshot import FittingPolicy, Placement

_HASHES_KEPT: Final = 1 << 17
"""Of nodes: more than any cluster has."""


@lru_cache(_HASHES_KEPT)
def hash_of(name: str) -> int:
    """A number of 64 bits; the same in every process."""
    return int.from_bytes(md5(name.encode(), usedforsecurity=False).digest()[:8], "little")


class Units:
    """Units (slots, or places for auxiliary pods) of each node, to be counted quickly."""

    def __init__(self, by_node: Mapping[str, int]) -> None:
        self._left = dict(by_node)
        self._nodes_by_left = Counter(self._left.values())

    def count(self, need: int, excluded: Collection[str] = ()) -> int:
        """How many times ``need`` units can be taken, each time from one node.

        Quick, as ten thousand nodes differ little in what is left.
        """
        found = sum(left // need * nodes for left, nodes in self._nodes_by_left.items() if left >= need)
        return found - sum(max(self._left.get(name, 0), 0) // need for name in set(excluded)) if excluded else found


class Room(Units):
    """Units left per node. Changes as pods are placed.

    left   units left, by node
    total  units that the node has; what worst fit measures by
    """

    def __init__(self, left: Mapping[str, int], total: Mapping[str, int], fitting: FittingPolicy) -> None:
        super().__init__(left)
        self._total = total
        self._worst = fitting == "worst"
        # Nodes by score and units left; those of one bucket are in the order of their hashes.
        self._buckets: dict[tuple[float, int], list[tuple[int, str]]] = {}
        for name, units in self._left.items():
            self._buckets.setdefault(self._key(name, units), []).append((hash_of(name), name))
        for bucket in self._buckets.values():
            bucket.sort()
        self._keys = sorted(self._buckets)

    def left(self, node: str) -> int:
        """Units left on ``node``; 0 of one that is unknown."""
        return self._left.get(node, 0)

    def by_node(self) -> Mapping[str, int]:
        """Units left, as they are at the moment."""
        return self._left

    def with_at_least(self, units: int) -> Iterator[str]:
        """Nodes that have so many left."""
        return (name for (_, left), bucket in self._buckets.items() if left >= units for _, name in bucket)

    def find(self, need: int, allocation: str, excluded: Collection[str] = ()) -> str | None:
        """The node that the policy prefers among those with ``need`` units left, or None."""
        best: tuple[int, str] | None = None
        best_score = 0.0
        wanted = None
        for score, left in self._keys:
            if best is not None and score != best_score:
                break
            if left < need:
                continue
            wanted = hash_of(allocation) if wanted is None else wanted
            found = _nearest(self._buckets[score, left], wanted, excluded)
            if found is not None and (best is None or found < best):
                best, best_score = found, score
        return None if best is None else best[1]

    def take(self, node: str, units: int) -> None:
        self.put(node, self._left[node] - units)

    def put(self, node: str, left: int) -> None:
        """Say how many units are left on a node."""
        before = self._left[node]
        if left == before:
            return
        entry = (hash_of(node), node)
        key = self._key(node, before)
        bucket = self._buckets[key]
        del bucket[bisect_left(bucket, entry)]
        if not bucket:
            del self._buckets[key]
            self._keys.remove(key)
        self._left[node] = left
        self._nodes_by_left[before] -= 1
        self._nodes_by_left[left] += 1
        key = self._key(node, left)
        if key not in self._buckets:
            self._buckets[key] = []
            insort(self._keys, key)
        insort(self._buckets[key], entry)

    def _key(self, node: str, left: int) -> tuple[float, int]:
        """What is smaller is looked at first."""
        return (-left / (self._total.get(node) or 1), left) if self._worst else (left, left)


def place_gang(
    room: Room, allocation: str, pods: tuple[int, ...], excluded: Collection[str] = ()
) -> tuple[Placement, ...] | None:
    """Find a node for every pod and take its room, or take nothing and return None: a gang that is half started holds
    slots that nobody can use (docs/reference/scheduling.md 16, B1).

    pods      slots of each pod in rank order, all equal; for auxiliary pods each takes one unit of ``room``
    excluded  nodes that it must not run on
    Exact, because pods of one size compete for the same room. Returns one Placement per pod, in rank order.
    """
    need = pods[0] or 1
    if len(pods) > 1 and room.count(need, excluded) < len(pods):
        return None
    placements: list[Placement] = []
    for slots in pods:
        node = room.find(need, allocation, excluded)
        if node is None:
            return None  # a single pod; of several each finds one, as there is room for all
        room.take(node, need)
        placements.append(Placement(node, slots))
    return tuple(placements)


def _nearest(bucket: list[tuple[int, str]], wanted: int, excluded: Collection[str]) -> tuple[int, str] | None:
    """The node whose hash lies least below ``wanted``, with that distance; the numbers go round at 2^64."""
    after = bisect_right(bucket, (wanted, "\U0010ffff"))
    for offset in range(1, len(bucket) + 1):
        number, name = bucket[after - offset]
        if name not in excluded:
            return (wanted - number) % (1 << 64), name
    return None
