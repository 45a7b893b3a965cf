"""Which labels are said of each node, because their values would make too many shapes, each with all labels (pure)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

MOST_VALUES: Final = 8
"""A label that has more of them is no part of shapes."""
MOST_SHAPES: Final = 64
"""Labels of few values each make many shapes together: then those with the most values are said of nodes too."""


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


def labels_to_move(shapes: Sequence[tuple[Mapping[str, str], object]]) -> frozenset[str]:
    """Labels without which few enough shapes are left: those with the most values, as many as it takes.

    Few enough are ``MOST_SHAPES``, or twice as many as there are without any label: nodes that differ otherwise gain
    nothing by repeating their labels.

    shapes  labels of each, and what is equal if they are all that differs
    """
    if len(shapes) <= MOST_SHAPES:
        return frozenset()
    values = {key: {labels.get(key) for labels, _ in shapes} for key in _keys(labels for labels, _ in shapes)}
    movable = sorted((key for key, found in values.items() if len(found) > 1), key=lambda key: (-len(values[key]), key))
    rows = [(rest, *map(labels.get, movable)) for labels, rest in shapes]

    def left(moved: int) -> int:
        return len({(row[0], row[1 + moved :]) for row in rows})

    most = max(MOST_SHAPES, 2 * left(len(movable)))
    moved = bisect_left(range(len(movable)), True, key=lambda count: left(count) <= most)
    return frozenset(movable[:moved])


def _keys(all_labels: Iterable[Mapping[str, str]]) -> set[str]:
    return set().union(*all_labels)
