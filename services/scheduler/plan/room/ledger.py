"""Amounts of resources by node: what is kept, promised, or about to come free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from services.scheduler.plan.nodes.amounts import Amounts

_NOTHING: Final[Mapping[str, int]] = {}


class Ledger:
    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_node)

    def of(self, node: str) -> Mapping[str, int]:
        """By resource."""
        return self._by_node.get(node, _NOTHING)

    def add(self, node: str, requests: Amounts, times: int = 1) -> None:
        mine = self._by_node.setdefault(node, {})
        for resource, amount in requests:
            mine[resource] = mine.get(resource, 0) + amount * times

    def clear(self) -> None:
        self._by_node = {}

    def take_all(self) -> Iterator[tuple[str, Amounts]]:
        """What there is of each node; then there is nothing."""
        found, self._by_node = self._by_node, {}
        return ((node, tuple(amounts.items())) for node, amounts in found.items())
