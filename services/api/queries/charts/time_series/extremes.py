"""Chooses the steps that stay of a long series, as ``Downsampling`` does, from packages of numbers.

A series comes as whole lists of steps and numbers, and of each stretch the lowest and the highest number are found with
a few calls for the stretch, where ``Downsampling`` makes some for every point. Pure.
Source: docs/reference/experiments.md 9.6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

Numbers: TypeAlias = Sequence[float | None]
"""Finite numbers of one series by position; None where it has none."""
Extreme: TypeAlias = tuple[float, int]
"""A number and the step of it."""


class KnownStretch(NamedTuple):
    """What is known of a stretch: of each series its lowest and its highest number, infinite ones if it has none.

    first_step  of its first point; may be None where there is a number
    """

    number: int
    first_step: int | None
    extremes: Sequence[tuple[Extreme, Extreme]]


class ChosenSteps:
    """Takes a series in packages, in the order of steps; holds what it keeps, and no package.

    total  how many points there are; any beyond it are left out
    limit  how many steps are kept at most, at least 1
    width  how many numbers a point has
    """

    def __init__(self, *, total: int, limit: int, width: int) -> None:
        self._total = total
        self._limit = limit
        self._keeps_all = total <= limit
        # The first and the last point, and in every stretch the two extremes of each series.
        self._stretches = max(1, (limit - 2) // (2 * width))
        self._seen = 0
        self._kept: list[int] = []
        self._ends: tuple[int, int] | None = None
        self._first_of: dict[int, int] = {}
        self._lowest: list[dict[int, Extreme]] = [{} for _ in range(width)]
        self._highest: list[dict[int, Extreme]] = [{} for _ in range(width)]

    def add(self, steps: Sequence[int], columns: Sequence[Numbers]) -> None:
        """columns  the numbers of each series at ``steps``"""
        start, end = self._seen, min(self._seen + len(steps), self._total)
        self._seen = end
        if start == end:
            return
        if self._keeps_all:
            self._kept.extend(steps[: end - start])
            return
        self._ends = (steps[0] if self._ends is None else self._ends[0], steps[end - start - 1])
        gaps = [None in column for column in columns]
        position = start
        while position < end:
            number = position * self._stretches // self._total
            # The first position of the next stretch, rounded up.
            stop = min(end, -(-(number + 1) * self._total // self._stretches))
            part = slice(position - start, stop - start)
            self._first_of.setdefault(number, steps[part.start])
            for each, column in enumerate(columns):
                self._look_at(number, each, steps, column, part, has_gaps=gaps[each])
            position = stop

    def stretches(self, count: int) -> Iterator[tuple[int, int, int]]:
        """The stretches among the next ``count`` points: number, and where each begins and ends, counted from the first
        of these points."""
        begin, end = self._seen, self._seen + count
        while begin < end:
            number = begin * self._stretches // self._total
            stop = min(end, -(-(number + 1) * self._total // self._stretches))
            yield number, begin - self._seen, stop - self._seen
            begin = stop

    def add_known(self, count: int, first_step: int, last_step: int, stretches: Iterable[KnownStretch]) -> None:
        """Take the next ``count`` of more points than are kept, whose extremes are known already."""
        self._seen += count
        self._ends = (first_step if self._ends is None else self._ends[0], last_step)
        for stretch in stretches:
            if stretch.first_step is not None:
                self._first_of.setdefault(stretch.number, stretch.first_step)
            for each, (lowest, highest) in enumerate(stretch.extremes):
                self._keep_extremes(stretch.number, each, lowest, highest)

    def steps(self) -> list[int]:
        """What is kept, ascending."""
        if self._ends is None:
            return self._kept
        newest = self._extremes(self._stretches - 1)
        # Where not everything fits, the extremes of the first series come first.
        wanted = chain(
            chain.from_iterable(map(self._extremes, range(self._stretches - 1))), newest[:2], self._ends, newest[2:]
        )
        return sorted(_first_different(wanted, self._limit))

    def _look_at(
        self, number: int, each: int, steps: Sequence[int], column: Numbers, part: slice, *, has_gaps: bool
    ) -> None:
        values = column[part]
        numbers = [value for value in values if value is not None] if has_gaps else values
        if not numbers:
            return
        # Of equals the first: here, and where a stretch goes on in the next package.
        low, high = min(numbers), max(numbers)  # type: ignore[type-var]
        assert low is not None
        assert high is not None
        lowest = low, steps[part.start + values.index(low)]
        self._keep_extremes(number, each, lowest, (high, steps[part.start + values.index(high)]))

    def _keep_extremes(self, number: int, each: int, lowest: Extreme, highest: Extreme) -> None:
        before = self._lowest[each].get(number)
        if lowest[0] != math.inf and (before is None or lowest[0] < before[0]):
            self._lowest[each][number] = lowest
        before = self._highest[each].get(number)
        if highest[0] != -math.inf and (before is None or highest[0] > before[0]):
            self._highest[each][number] = highest

    def _extremes(self, number: int) -> list[int]:
        """Steps of a stretch: lowest and highest of the first series, of the second ..., or else its first."""
        found = [
            extremes[number][1]
            for pair in zip(self._lowest, self._highest, strict=True)
            for extremes in pair
            if number in extremes
        ]
        return found or [step for step in (self._first_of.get(number),) if step is not None]


def _first_different(steps: Iterable[int], limit: int) -> set[int]:
    kept: set[int] = set()
    for step in steps:
        if len(kept) == limit:
            break
        kept.add(step)
    return kept
