"""Which labels are said of each node rather than of its shape (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MOST_VALUES: Final = 8
"""A label that has more of them is no part of shapes: each value would make another shape of all its labels."""


class LabelValues:
    """How many nodes have each value of each label."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, int]] = {}

    def add(self, labels: Mapping[str, str]) -> None:
        for key, value in labels.items():
            values = self._nodes.setdefault(key, {})
            values[value] = values.get(value, 0) + 1

    def remove(self, labels: Mapping[str, str]) -> None:
        for key, value in labels.items():
            values = self._nodes[key]
            values[value] -= 1
            if not values[value]:
                del values[value]
                if not values:
                    del self._nodes[key]

    def with_many(self) -> frozenset[str]:
        """Labels that have too many values for a shape."""
        return frozenset(key for key, values in self._nodes.items() if len(values) > MOST_VALUES)
