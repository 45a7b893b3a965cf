"""Which domains small work goes to: those that are in use already, so that others stay whole for gangs.

Of domains in use, the one with the least units left comes first; one where nothing runs comes last. Nodes that are in
no domain keep none whole, and come before all. The narrowest level decides, and wider ones decide among equals. A level
whose domains are single nodes says nothing that the nodes do not say themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from services.scheduler.plan.topology.domains import Domain, Domains

Preference: TypeAlias = tuple[tuple[bool, int], ...]
"""What is smaller comes first."""
NOWHERE: Final = 0
"""Number of nodes where there are no domains to choose from."""
_IN_NO_DOMAIN: Final = (False, -1)


class DomainUse:
    def __init__(self, domains: Domains, left: Mapping[str, int], total: Mapping[str, int]) -> None:
        """
        left   units of each node that nobody holds; less than none is none
        total  units of each node when empty
        """
        levels = [level for level in range(len(domains.levels)) if _has_several_nodes(domains, level)]
        self._levels = tuple(reversed(levels))
        self._left: dict[Domain, int] = {}
        self._total: dict[Domain, int] = {}
        self._numbers: dict[tuple[Domain | None, ...], int] = {}
        self._of_number: list[tuple[Domain | None, ...]] = [()]
        self._of_node: dict[str, int] = {}
        self._found: dict[int, Preference] = {}
        """Until the next change."""
        for node, units in left.items() if self._levels else ():
            paths = domains.of(node)
            found = tuple(paths[level] if paths else None for level in self._levels)
            number = self._numbers.get(found)
            if number is None:
                number = self._numbers[found] = len(self._of_number)
                self._of_number.append(found)
            self._of_node[node] = number
            for domain in found:
                if domain is not None:
                    self._left[domain] = self._left.get(domain, 0) + max(units, 0)
                    self._total[domain] = self._total.get(domain, 0) + total.get(node, 0)

    def number(self, node: str) -> int:
        """The same for nodes of the same domains."""
        return self._of_node.get(node, NOWHERE)

    def put(self, node: str, before: int, left: int) -> None:
        """A node has ``left`` units in place of those ``before``."""
        change = max(left, 0) - max(before, 0)
        self._found.clear()
        for domain in self._of_number[self.number(node)]:
            if domain is not None:
                self._left[domain] += change

    def preference(self, number: int) -> Preference:
        """Of the nodes of that number."""
        found = self._found.get(number)
        if found is None:
            of = self._of_number[number]
            found = self._found[number] = tuple([_IN_NO_DOMAIN if each is None else self._of(each) for each in of])
        return found

    def _of(self, domain: Domain) -> tuple[bool, int]:
        left = self._left[domain]
        return left >= self._total[domain], left


def _has_several_nodes(domains: Domains, level: int) -> bool:
    return any(len(nodes) > 1 for nodes in domains.of_level(level).values())
