"""Units left in each domain, kept in step with those of the nodes, so that the tightest domain is found at once.

A domain with units enough may still have no room, as they are scattered over its nodes, so whoever asks looks at those.
Where no domain of a level has room for a demand, this is remembered until something comes free.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping

from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.topology.domains import Domain, Domains
from services.scheduler.plan.topology.levels import UNKNOWN_LEVEL


class DomainUnits:
    def __init__(self, domains: Domains, left: Mapping[str, int]) -> None:
        """``left``: units of each node; less than none is none."""
        self._domains = domains
        self._free: dict[Domain, int] = {}
        for node, units in left.items():
            for domain in domains.of(node):
                if domain is not None:
                    self._free[domain] = self._free.get(domain, 0) + max(units, 0)
        self._order: list[list[tuple[int, Domain]]] = [[] for _ in domains.levels]
        for domain, free in self._free.items():
            self._order[len(domain) - 1].append((free, domain))
        for of_level in self._order:
            of_level.sort()
        self._refused: set[tuple[int, Demand]] = set()
        self._found: dict[tuple[int, Demand], Domain] = {}
        """Until the next change."""

    def put(self, node: str, before: int, left: int) -> None:
        """A node has ``left`` units in place of those ``before``."""
        self._found.clear()
        if left > before:
            self._refused.clear()
        change = max(left, 0) - max(before, 0)
        if not change:
            return
        for domain in self._domains.of(node):
            if domain is None:
                continue
            order, free = self._order[len(domain) - 1], self._free[domain]
            del order[bisect_left(order, (free, domain))]
            self._free[domain] = free + change
            insort(order, (free + change, domain))

    def first(self, demand: Demand, level: int, has_room: Callable[[Domain], bool]) -> Domain | None:
        """The domain of a level with the least units left among those that have room for all pods of ``demand``."""
        if level == UNKNOWN_LEVEL or (level, demand) in self._refused:
            return None
        found = self._found.get((level, demand))
        if found is not None:
            return found
        order = self._order[level]
        for _, domain in order[bisect_left(order, (demand.units * demand.pods, ())) :]:
            if has_room(domain):
                self._found[level, demand] = domain
                return domain
        self._refused.add((level, demand))
        return None
