"""Chooses the points of a window of a long series by its levels, which are read where they decide something.

The extremes of all blocks are a hundredth of the series. Points are read of those blocks in which a stretch, or the
window, begins or ends, so no more of them are read for a long series than for a short one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from services.api.queries.charts.levels import statements as sql
from services.api.queries.charts.levels.packing import Extremes, Shape, unpack_blocks, unpack_extremes
from services.api.queries.charts.time_series.extremes import ChosenSteps, Numbers


class SeriesLevels:
    """What a series has of levels in a window, with a driver in a transaction that sees the same reports all the time.

    count  points of the window that are in them
    next   the first step that is not: from there on reports have to be read
    """

    def __init__(self, driver: Any, series: tuple[int, str, str], shape: Shape) -> None:
        """series  trial, group and name"""
        self._driver = driver
        self._series = series
        self._shape = shape
        self._first_block = 0
        self._extremes = Extremes([], [], [], [], [])
        self._start = 0
        self.count = 0
        self.next = 0

    @classmethod
    async def read(
        cls, driver: Any, series: tuple[int, str, str], *, first: int, last: int, shape: Shape
    ) -> SeriesLevels | None:
        """first, last  steps; None when no point between them is in a chunk."""
        levels = cls(driver, series, shape)
        chunk, last_step, extremes = await driver.fetchrow(sql.EXTREMES, *series, first, last)
        if chunk is None:
            return None
        levels._first_block = chunk * shape.blocks
        levels._extremes = unpack_extremes(extremes, shape)
        levels.next = last_step + 1
        await levels._find_ends(first, last, last_step)
        return levels if levels.count > 0 else None

    async def _find_ends(self, first: int, last: int, last_step: int) -> None:
        """Where the window begins and ends, as positions in the chunks."""
        firsts = self._extremes.first_steps
        stop = len(firsts) * self._shape.block
        wanted = []
        if firsts[0] < first:
            wanted.append(bisect_right(firsts, first) - 1)
        if last < last_step:
            wanted.append(bisect_right(firsts, last) - 1)
        blocks = dict(await self._blocks(sorted(set(wanted))))
        if firsts[0] < first:
            self._start = wanted[0] * self._shape.block + bisect_left(blocks[wanted[0]][0], first)
        if last < last_step:
            stop = wanted[-1] * self._shape.block + bisect_right(blocks[wanted[-1]][0], last)
        self.count = stop - self._start

    async def _blocks(self, numbers: Sequence[int]) -> Iterable[tuple[int, tuple[Sequence[int], Numbers]]]:
        if not numbers:
            return []
        packed = await self._driver.fetchval(
            sql.BLOCKS,
            *self._series,
            [self._first_block + number for number in numbers],
            self._shape.blocks,
            self._shape.block_bytes,
        )
        return zip(numbers, unpack_blocks(packed, self._shape), strict=True)

    async def add_to(self, chosen: ChosenSteps) -> None:
        """Add the points of the window; ``chosen`` has none yet, and does not keep all."""
        size, start, stop = self._shape.block, self._start, self._start + self.count
        # Runs of whole blocks end where a block has to be looked into, and where a stretch ends behind a block.
        looked_into = {start // size, (stop - 1) // size}
        ends = set()
        for bound in chosen.bounds:
            position = start + bound
            if position >= stop:
                break
            if position % size:
                looked_into.add(position // size)
            else:
                ends.add(position // size)
        blocks = dict(await self._blocks(sorted(looked_into)))
        begun = start // size
        for block in sorted(looked_into | ends):
            if begun < block:
                self._add_run(chosen, begun, block)
                begun = block
            if block in looked_into:
                steps, numbers = blocks[block]
                part = slice(max(start - block * size, 0), min(stop - block * size, size))
                chosen.add(steps[part], [numbers[part]])
                begun = block + 1

    def _add_run(self, chosen: ChosenSteps, begin: int, end: int) -> None:
        """Add whole blocks, all of one stretch."""
        extremes = self._extremes
        low, high = min(extremes.lows[begin:end]), max(extremes.highs[begin:end])
        chosen.add_run(
            (end - begin) * self._shape.block,
            extremes.first_steps[begin],
            (low, extremes.low_steps[extremes.lows.index(low, begin, end)]),
            (high, extremes.high_steps[extremes.highs.index(high, begin, end)]),
        )
