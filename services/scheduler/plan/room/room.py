"""Room left on the nodes, kept in order so that the node for a pod is found among ten thousand in no time.

Best fit fills the fullest node that still has room, which keeps whole nodes free for large pods; worst fit takes the
one with the largest part free. Among nodes that are equally full, best fit prefers one that is busy for as long anyway
(lifetimes.py), and of these one whose rack is in use already (topology/domain_use.py). Then the hash of allocation and
node decides, so that what is started again finds the same node, and what starts beside it another one.
Source: docs/reference/scheduling.md 4.2 and 4.3.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import md5
from typing import Final, Protocol, TypeAlias

from services.scheduler.plan.nodes.amounts import Amounts
from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.room.lifetimes import EMPTY, Lifetimes, prolonged
from services.scheduler.plan.snapshot import FittingPolicy
from services.scheduler.plan.topology.domain_units import DomainUnits
from services.scheduler.plan.topology.domain_use import NOWHERE, DomainUse, Preference
from services.scheduler.plan.topology.domains import Domain, Domains

ENOUGH: Final = 1 << 40
"""Pods that fit where nothing is counted."""
_NONE: Final[Mapping[str, int]] = {}
_NUMBERS: Final = 1 << 64
_LAST: Final = "\U0010ffff"
"""After any name of a node."""
Key: TypeAlias = tuple[float, int, int, int, int]
"""Score, units left, group, lifetime and number of the domains: what nodes that are alike have in common. The smallest
is preferred, but for the domains, which ``in_use`` compares."""
_HASHES_KEPT: Final = 1 << 17
"""Of nodes: more than any cluster has."""


@lru_cache(_HASHES_KEPT)
def hash_of(name: str) -> int:
    """A number of 64 bits; the same in every process."""
    return int.from_bytes(md5(name.encode(), usedforsecurity=False).digest()[:8], "little")


def nearest_first(nodes: Sequence[tuple[int, str]], wanted: int) -> Iterator[tuple[int, str]]:
    """``nodes``, which are in the order of their hashes, by how far these lie below ``wanted``, with that distance; the
    numbers go round at 2^64."""
    after = bisect_right(nodes, (wanted, _LAST))
    for offset in range(1, len(nodes) + 1):
        number, name = nodes[after - offset]
        yield (wanted - number) % _NUMBERS, name


class Fits(Protocol):
    """How many pods of these requests find enough of everything but slots on a node, when so much more is given."""

    def __call__(self, node: str, requests: Amounts, given: Mapping[str, int] | None = None, /) -> int: ...


class Units:
    """Units (slots, or places for auxiliary pods) of each node, to be counted quickly.

    by_node  units left
    groups   numbers of nodes, as demands name them; 0 where there is none
    fits     None where only units count
    domains  of the topology; None where nobody asks for any
    """

    def __init__(
        self,
        by_node: Mapping[str, int],
        groups: Mapping[str, int] = _NONE,
        fits: Fits | None = None,
        domains: Domains | None = None,
    ) -> None:
        self._left = dict(by_node)
        self._groups = groups
        self._fits = fits
        self.domains = domains
        self._in_domains: DomainUnits | None = None
        group = groups.get
        self._nodes_by_left = (
            Counter((left, group(node, 0)) for node, left in self._left.items())
            if groups
            else Counter((left, 0) for left in self._left.values())
        )
        self._refused: set[Demand] = set()
        """Demands for which there is not enough; forgotten when something comes free."""

    def has(self, demand: Demand) -> bool:
        """Whether all its pods have room."""
        if demand.topology is not None and demand.topology.required:
            return self.domain_for(demand, demand.topology.level) is not None
        # Equal pods may have room where others do not: a node of six takes two of three slots, but one of four.
        return self._has_places(demand) or any(self._has_places(one) for one in demand.equal)

    def _has_places(self, demand: Demand) -> bool:
        if demand in self._refused:
            return False
        if not demand.requests or self._fits is None:
            if self._count_units(demand) >= demand.pods:
                return True
            self._refused.add(demand)
            return False
        found = 0
        # Among those that lack something else a node is looked at by itself, so no more of them than necessary.
        for node in self._nodes_for(demand):
            found += self.pods_on(node, demand)
            if found >= demand.pods:
                return True
        self._refused.add(demand)
        return False

    def has_units(self, demand: Demand) -> bool:
        """The same if units were all that it asks for."""
        if demand.stays_in_domain:
            return self.has(demand.of_units)
        return any(self._count_units(one) >= one.pods for one in (demand, *demand.equal))

    def count(self, demand: Demand) -> int:
        """How many of its pods have room."""
        if not demand.requests or self._fits is None:
            return self._count_units(demand)
        return sum(self.pods_on(node, demand) for node in self._nodes_for(demand))

    def units_of(self, demand: Demand) -> int:
        """Units left on all nodes that it may use, however they are spread."""
        return self._sum_of(demand, lambda left: max(left, 0))

    def pods_on(self, node: str, demand: Demand, units: int = 0, given: Mapping[str, int] | None = None) -> int:
        """How many of its pods have room on a node that it may use, if so many units and so much else were given."""
        found = demand.places_in(self._left[node] + units)
        if found and demand.requests and self._fits is not None:
            return min(found, demand.places_of(self._fits(node, demand.requests, given)))
        return found

    def pods_in(self, nodes: Iterable[str], demand: Demand, enough: int = ENOUGH) -> int:
        """How many of its pods have room on ``nodes``; more than ``enough`` are not counted."""
        found, need = 0, demand.units
        for node in nodes:
            if self._left.get(node, 0) >= need and demand.allows(node):
                found += self.pods_on(node, demand)
                if found >= enough:
                    break
        return found

    def domain_for(self, demand: Demand, level: int) -> Domain | None:
        """The domain of a level with the least units left among those that have room for all pods of ``demand``."""
        if self.domains is None:
            return None
        if self._in_domains is None:
            self._in_domains = DomainUnits(self.domains, self._left)
        nodes, alternatives = self.domains.nodes, (demand, *demand.equal)

        def has_room(domain: Domain) -> bool:
            return any(self.pods_in(nodes(domain), one, one.pods) >= one.pods for one in alternatives)

        return self._in_domains.first(demand, level, has_room)

    def most_in_domain(self, demand: Demand) -> int:
        """How many of its pods have room in the domain of its level with the most room."""
        if self.domains is None or demand.topology is None:
            return 0
        found = self.domains.of_level(demand.topology.level).values()
        return max((self.pods_in(nodes, demand) for nodes in found), default=0)

    def _nodes_for(self, demand: Demand) -> Iterator[str]:
        """Those with room for a pod, as far as units go."""
        need = demand.units
        return (node for node, left in self._left.items() if left >= need and demand.allows(node))

    def _count_units(self, demand: Demand) -> int:
        """Quick, as ten thousand nodes differ little in what is left."""
        if demand.most:
            return self._sum_of(demand, demand.places_in)
        need, groups, excluded = demand.units, demand.groups, demand.excluded
        found = sum(
            left // need * nodes
            for (left, group), nodes in self._nodes_by_left.items()
            if left >= need and (groups is None or group in groups)
        )
        if not excluded:
            return found
        without = (node for node in set(excluded) if demand.nodes is None or node in demand.nodes)
        return found - sum(max(self._left.get(node, 0), 0) // need for node in without)

    def _sum_of(self, demand: Demand, worth: Callable[[int], int]) -> int:
        """What the units left on each node that ``demand`` may use are worth, all together."""
        groups = demand.groups
        found = sum(
            worth(left) * nodes
            for (left, group), nodes in self._nodes_by_left.items()
            if groups is None or group in groups
        )
        without = (node for node in set(demand.excluded) if demand.nodes is None or node in demand.nodes)
        return found - sum(worth(self._left.get(node, 0)) for node in without)


class Room(Units):
    """Units left per node. Changes as pods are placed.

    left       units left, by node
    total      units that the node has; what worst fit measures by
    lifetimes  of the nodes, shared with other views of them; None where neither they nor domains matter to single pods
    """

    def __init__(
        self,
        left: Mapping[str, int],
        total: Mapping[str, int],
        fitting: FittingPolicy,
        groups: Mapping[str, int] = _NONE,
        fits: Fits | None = None,
        *,
        domains: Domains | None = None,
        lifetimes: Lifetimes | None = None,
    ) -> None:
        super().__init__(left, groups, fits, domains)
        self._lifetimes = lifetimes
        self._total = total
        self._fitting = fitting
        self._worst = fitting == "worst"
        self._use = None if domains is None or lifetimes is None else DomainUse(domains, self._left, total)
        # Nodes by what is alike of them; those of one bucket are in the order of their hashes.
        self._buckets: dict[Key, list[tuple[int, str]]] = {}
        self._key_of = {name: self._key(name, units) for name, units in self._left.items()}
        for name, key in self._key_of.items():
            self._buckets.setdefault(key, []).append((hash_of(name), name))
        for bucket in self._buckets.values():
            bucket.sort()
        self._keys = sorted(self._buckets)

    def part(self, nodes: Iterable[str]) -> Room:
        """A room of some of the nodes, as they are at the moment."""
        left = {node: self._left[node] for node in nodes if node in self._left}
        return Room(left, self._total, self._fitting, self._groups, self._fits, lifetimes=self._lifetimes)

    def left(self, node: str) -> int:
        """Units left on ``node``; 0 of one that is unknown."""
        return self._left.get(node, 0)

    def kinds(self) -> Sequence[Key]:
        """What there is of nodes that are alike, the preferred first."""
        return self._keys

    def alike(self, key: Key) -> Sequence[tuple[int, str]]:
        """Those of a kind, with their hashes, by which they are ordered."""
        return self._buckets[key]

    def by_node(self) -> Mapping[str, int]:
        """Units left, as they are at the moment."""
        return self._left

    def fits(self, node: str, requests: Amounts, given: Mapping[str, int] | None = None) -> int:
        """How many pods of ``requests`` find enough of everything but units."""
        return ENOUGH if self._fits is None else self._fits(node, requests, given)

    def with_at_least(self, units: int) -> Iterator[str]:
        """Nodes that have so many left."""
        return (name for (_, left, *_), bucket in self._buckets.items() if left >= units for _, name in bucket)

    def find(
        self, demand: Demand, allocation: str, placed: Mapping[str, int] = _NONE, *, lasts: int = EMPTY
    ) -> str | None:
        """The node that the policy prefers among those with room for a pod of ``demand``, or None.

        lasts   magnitude of how long it is expected to run
        placed  pods of the same demand whose units have been taken, but nothing else, by node
        """
        if demand in self._refused:
            return None
        need, groups = demand.units, demand.groups
        best: tuple[int, Preference, int, str] | None = None
        best_score = 0.0
        wanted = None
        keys = self._keys
        for index in range(0 if self._worst else bisect_left(keys, (need,)), len(keys)):
            key = keys[index]
            score, left, group, busy, number = key
            if best is not None and score != best_score:
                break
            if left < need or (groups is not None and group not in groups):
                continue
            longer = prolonged(busy, lasts)
            if best is not None and longer > best[0]:
                continue
            in_use = self.in_use(number)
            if best is not None and (longer, in_use) > best[:2]:
                continue
            wanted = hash_of(allocation) if wanted is None else wanted
            found = self._nearest(self._buckets[key], wanted, demand, placed)
            if found is not None and (best is None or (longer, in_use, *found) < best):
                best, best_score = (longer, in_use, *found), score
        if best is None:
            if demand.requests and not placed:
                self._refused.add(demand)
            return None
        return best[3]

    def take(self, node: str, units: int, *, lasts: int = EMPTY) -> None:
        """For something that is expected to run for that long."""
        if lasts and self._lifetimes is not None:
            self._lifetimes.start(node, lasts)
        self.put(node, self._left[node] - units)

    def put(self, node: str, left: int) -> None:
        """Say how many units are left on a node, which may be busy longer by now."""
        before, key, after = self._left[node], self._key_of[node], self._key(node, left)
        if key == after:
            return
        entry = (hash_of(node), node)
        bucket = self._buckets[key]
        del bucket[bisect_left(bucket, entry)]
        if not bucket:
            del self._buckets[key]
            del self._keys[bisect_left(self._keys, key)]
        self._left[node] = left
        if left != before:
            self._follow(node, before, left)
        group = key[2]
        self._nodes_by_left[before, group] -= 1
        self._nodes_by_left[left, group] += 1
        if left > before:
            self._refused.clear()
        self._key_of[node] = after
        if after not in self._buckets:
            self._buckets[after] = []
            insort(self._keys, after)
        insort(self._buckets[after], entry)

    def _follow(self, node: str, before: int, left: int) -> None:
        if self._in_domains is not None:
            self._in_domains.put(node, before, left)
        if self._use is not None:
            self._use.put(node, before, left)

    def in_use(self, number: int) -> Preference:
        """The domains of that number with the smallest are preferred."""
        return () if self._use is None else self._use.preference(number)

    def _key(self, node: str, left: int) -> Key:
        """What is smaller is looked at first."""
        group = self._groups.get(node, 0)
        score = -left / (self._total.get(node) or 1) if self._worst else left
        busy = EMPTY if self._lifetimes is None else self._lifetimes.of(node)
        return score, left, group, busy, NOWHERE if self._use is None else self._use.number(node)

    def _nodes_for(self, demand: Demand) -> Iterator[str]:
        need, groups, excluded = demand.units, demand.groups, demand.excluded
        for key in self._keys:
            if key[1] >= need and (groups is None or key[2] in groups):
                for _, name in self._buckets[key]:
                    if name not in excluded:
                        yield name

    def _nearest(
        self, bucket: list[tuple[int, str]], wanted: int, demand: Demand, placed: Mapping[str, int]
    ) -> tuple[int, str] | None:
        """The nearest node that will do, with its distance."""
        excluded, requests = demand.excluded, demand.requests
        fits = self._fits if requests else None
        after = bisect_right(bucket, (wanted, _LAST))
        for offset in range(1, len(bucket) + 1):  # as ``nearest_first``, which would take its time
            number, name = bucket[after - offset]
            if name not in excluded and (fits is None or fits(name, requests) > placed.get(name, 0)):
                return (wanted - number) % _NUMBERS, name
        return None
