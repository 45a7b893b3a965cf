"""Fewer points for a chart that looks the same: of every stretch of a series its lowest and its highest values.

The stretches hold equally many points, so nothing that stands out is lost, however many points there are; what is read
again gives the same points. Points come one by one, and no more are held than are kept. Pure.
Source: docs/reference/experiments.md 9.6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Downsampling(Generic[Item]):
    """Takes the points of a series in their order, and keeps at most ``limit`` of them.

    total  how many points there are; any beyond it are left out
    limit  at least 1
    width  how many numbers a point has: several series are drawn over the same points
    """

    def __init__(self, *, total: int, limit: int, width: int) -> None:
        self._total = total
        self._limit = limit
        self._keeps_all = total <= limit
        # The first and the last point, and in every stretch the two extremes of each series.
        self._stretches = max(1, (limit - 2) // (2 * width))
        self._width = width
        self._seen = 0
        self._kept: dict[int, Item] = {}
        self._first: tuple[int, Item] | None = None
        self._last: tuple[int, Item] | None = None
        self._stretch = _Stretch[Item](width)
        self._stretch_number = 0

    def add(self, item: Item, numbers: Sequence[float | None]) -> None:
        """numbers  the values of its series, None for one that has no number here"""
        if self._seen >= self._total:
            return
        position = self._seen
        self._seen += 1
        if self._keeps_all:
            self._kept[position] = item
            return
        number = position * self._stretches // self._total
        if number != self._stretch_number:
            self._keep(self._stretch.extremes())
            self._stretch, self._stretch_number = _Stretch[Item](self._width), number
        self._stretch.add(position, item, numbers)
        self._first = self._first or (position, item)
        self._last = (position, item)

    def points(self) -> list[Item]:
        """What is kept, in the order in which it came."""
        if self._first is not None and self._last is not None:
            # Where not everything fits, the extremes of the first series come first.
            newest = list(self._stretch.extremes())
            self._keep(chain(newest[:2], (self._first, self._last), newest[2:]))
        return [self._kept[position] for position in sorted(self._kept)]

    def _keep(self, points: Iterable[tuple[int, Item]]) -> None:
        for position, item in points:
            if len(self._kept) < self._limit:
                self._kept[position] = item


class _Stretch(Generic[Item]):
    """A part of the series, of which the lowest and highest finite values are known."""

    def __init__(self, width: int) -> None:
        self._first: tuple[int, Item] | None = None
        self._lowest: list[tuple[float, int, Item] | None] = [None] * width
        self._highest: list[tuple[float, int, Item] | None] = [None] * width

    def add(self, position: int, item: Item, numbers: Sequence[float | None]) -> None:
        self._first = self._first or (position, item)
        for column, number in enumerate(numbers):
            if number is None or not math.isfinite(number):
                continue
            lowest, highest = self._lowest[column], self._highest[column]
            if lowest is None or number < lowest[0]:
                self._lowest[column] = (number, position, item)
            if highest is None or number > highest[0]:
                self._highest[column] = (number, position, item)

    def extremes(self) -> Iterable[tuple[int, Item]]:
        """Lowest and highest of the first series, of the second ...; the first point where there are no numbers."""
        found = [
            (extreme[1], extreme[2])
            for pair in zip(self._lowest, self._highest, strict=True)
            for extreme in pair
            if extreme is not None
        ]
        if not found and self._first is not None:
            return [self._first]
        return found
