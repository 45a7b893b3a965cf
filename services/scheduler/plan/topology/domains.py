"""Domains: the nodes of a pool that have the same value of a label, and of those of all wider levels.

So racks of one name in two zones are two domains. A node without the label is in no domain of the level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, PoolSnapshot
from services.scheduler.plan.topology.levels import UNKNOWN_LEVEL, LevelChoice, TopologyRequest

Domain: TypeAlias = tuple[str, ...]
"""Values of the labels, the widest level first; the last one is of its own level."""
_NO_NODES: Final[Sequence[str]] = ()


class Domains:
    """Of the nodes of one pool."""

    def __init__(self, levels: Sequence[str], values: Mapping[str, Sequence[str]]) -> None:
        """
        levels  keys of labels, the widest first
        values  by node, those of its labels in the order of ``levels``; "" where it has none
        """
        self.levels = tuple(levels)
        self._of_node: dict[str, tuple[Domain | None, ...]] = {}
        self._nodes: list[dict[Domain, list[str]]] = [{} for _ in levels]
        for node, path in values.items():
            found = tuple(tuple(path[: level + 1]) if value else None for level, value in enumerate(path))
            self._of_node[node] = found
            for level, domain in enumerate(found):
                if domain is not None:
                    self._nodes[level].setdefault(domain, []).append(node)

    def of(self, node: str) -> tuple[Domain | None, ...]:
        """The domains that a node is in, by level; () of one that is unknown."""
        return self._of_node.get(node, ())

    def at(self, node: str, level: int) -> Domain | None:
        """The one of a level."""
        found = self._of_node.get(node, ())
        return found[level] if 0 <= level < len(found) else None

    def of_level(self, level: int) -> Mapping[Domain, Sequence[str]]:
        """The nodes of each domain of a level."""
        return self._nodes[level] if level != UNKNOWN_LEVEL else {}

    def nodes(self, domain: Domain) -> Sequence[str]:
        return self._nodes[len(domain) - 1].get(domain, _NO_NODES)

    def choice(self, request: TopologyRequest) -> LevelChoice | None:
        """What is asked for; None where a level is preferred that there is not."""
        if request.level in self.levels:
            return LevelChoice(self.levels.index(request.level), request.required)
        return LevelChoice(UNKNOWN_LEVEL, required=True) if request.required else None

    def share_one(self, nodes: Iterable[str], level: int) -> bool:
        """Whether all ``nodes`` are in one domain of a level."""
        found = {self.at(node, level) for node in nodes}
        return len(found) == 1 and None not in found


def domains_of(pool: PoolSnapshot) -> Domains | None:
    """None where no node is in any, and no gang asks for any that waits or may be moved."""
    nodes = {node.name: node.domains for node in pool.nodes or ()}
    if not any(nodes.values()) and not _asks(pool.pending) and not _asks(one for one in pool.held if one.movable):
        return None
    return Domains(pool.levels, nodes)


def _asks(allocations: Iterable[HeldAllocation | PendingAllocation]) -> bool:
    return any(one.topology is not None and len(one.pods) > 1 for one in allocations)
