"""Reads the levels of one or several metrics in a window, and chooses points by them.

Several metrics are drawn over the same points: levels serve them as far as all were reported at the same steps, which
hashes tell. Outlines of chunks are read first, then the blocks of those chunks in which a stretch, or the window,
begins or ends, and then points of the blocks that may hold an extreme (``deciding.py``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from services.api.queries.charts.levels import statements as sql
from services.api.queries.charts.levels.deciding import SeriesChoice, Split
from services.api.queries.charts.levels.packing import (
    HASH_BYTES,
    OUTLINE_BYTES,
    BlockExtremes,
    Outlines,
    PackedBlock,
    Shape,
    unpack_extremes,
    unpack_outlines,
)
from services.api.queries.charts.time_series.extremes import ChosenSteps, KnownStretch

_BLOCKS_READ_ALONG: Final = 2
"""Between two blocks that are wanted: so many more cost less than looking for another place."""


class _Outlined(NamedTuple):
    """A series in the window: the number of its first chunk, the first one without an outline, if there is one, and
    outlines and hashes of the others."""

    first: int | None
    first_without: int | None
    outlines: bytes | None
    hashes: bytes | None

    def usable(self) -> int:
        """How many chunks there are before the first one without an outline."""
        if self.first is None:
            return 0
        if self.first_without is not None:
            return self.first_without - self.first
        return len(self.outlines or b"") // OUTLINE_BYTES


class SeriesLevels:
    """What some metrics of a group have of levels in a window, with a driver in a transaction that sees the same
    reports all the time.

    count    points of the window that are in them
    next     the first step that is not: from there on reports have to be read
    lacking  places of the metrics whose levels end there; none if those of others do not go on either way
    """

    def __init__(self, driver: Any, trial_id: int, group: str, names: Sequence[str], shape: Shape) -> None:
        """names  each once"""
        self._driver = driver
        self._key = trial_id, group
        self._names = names
        self._shape = shape
        self._first_chunk = 0
        self._outlines: list[Outlines] = []
        self._start = 0
        self._ends = 0, 0
        self._read: list[dict[int, PackedBlock]] = [{} for _ in names]
        self.count = 0
        self.next = 0
        self.lacking: Sequence[int] = ()

    async def read(self, first: int, last: int) -> None:
        """first, last  steps of the window"""
        self.next = first
        await self._read_outlines(first, last)
        if self._outlines:
            await self._find_ends(first, last)

    async def _read_outlines(self, first: int, last: int) -> None:
        """Of the chunks that have the same steps in all metrics."""
        rows = [_Outlined(*row) for row in await self._driver.fetch(sql.OUTLINES, *self._key, self._names, first, last)]
        usable = [row.usable() for row in rows]
        most = min(usable)
        same = most if len(rows) == 1 else _shared_chunks(rows, most)
        if same == most:
            self.lacking = [place for place, count in enumerate(usable) if count == most]
        if same:
            self._first_chunk = rows[0].first or 0
            self._outlines = [unpack_outlines((row.outlines or b"")[: same * OUTLINE_BYTES]) for row in rows]

    async def _find_ends(self, first: int, last: int) -> None:
        """Where the window begins and ends, as positions in the chunks, and steps of its first and its last point."""
        firsts, lasts, _ = self._outlines[0]
        stop = len(firsts) * self._shape.chunk
        first_step, last_step = firsts[0], lasts[-1]
        self.next = last_step + 1
        # An end is within a chunk that has points on both sides of it, and what is looked up is not empty.
        if first_step < first:
            steps = await self._steps_of(0)
            self._start = bisect_left(steps, first)
            first_step = steps[self._start]
        if last < last_step:
            steps = await self._steps_of(len(firsts) - 1)
            inside = bisect_right(steps, last)
            stop += inside - self._shape.chunk
            last_step = steps[inside - 1]
        self.count = max(stop - self._start, 0)
        self._ends = first_step, last_step

    async def _steps_of(self, chunk: int) -> list[int]:
        width = self._shape.blocks
        blocks = range(chunk * width, (chunk + 1) * width)
        await self._read_blocks(0, blocks)
        return [step for block in blocks for step in self._read[0][block].steps()]

    async def add_to(self, chosen: ChosenSteps) -> None:
        """Add the points of the window; ``chosen`` has none yet, and does not keep all."""
        stretches = list(chosen.stretches(self.count))
        bounds = [self._start, *(self._start + end for _, _, end in stretches)]
        cut = sorted({bound // self._shape.chunk for bound in bounds if bound % self._shape.chunk})
        offsets = {chunk: (rank - chunk) * self._shape.blocks for rank, chunk in enumerate(cut)}
        splits = [Split.of(begin, end, offsets, self._shape) for begin, end in pairwise(bounds)]
        blocks = [await self._block_extremes(name, cut) for name in self._names]
        choices = [
            SeriesChoice(outlines.extremes, extremes, splits)
            for outlines, extremes in zip(self._outlines, blocks, strict=True)
        ]
        # Of a stretch without numbers its first point counts.
        empty = [place for place in range(len(splits)) if all(choice.is_empty(place) for choice in choices)]
        heads = {edge.block for place in empty for edge in splits[place].edges if edge.is_head}
        for series, choice in enumerate(choices):
            wanted = {*choice.unsure_blocks(), *(heads if series == 0 else ())}
            await self._read_blocks(series, sorted(wanted - self._read[series].keys()))
            choice.read(self._read[series])
        first_steps = {place: self._first_step_of(splits[place], offsets, blocks[0]) for place in empty}
        chosen.add_known(
            self.count,
            *self._ends,
            (
                KnownStretch(number, first_steps.get(place), [choice.extremes(place) for choice in choices])
                for place, (number, _, _) in enumerate(stretches)
            ),
        )

    def _first_step_of(self, split: Split, offsets: Mapping[int, int], blocks: BlockExtremes) -> int:
        chunk, within = divmod(split.begin, self._shape.chunk)
        if within == 0:
            return self._outlines[0].first_steps[chunk]
        block, position = divmod(split.begin, self._shape.block)
        if position:
            return self._read[0][block].step(position)
        return blocks.first_steps[block + offsets[chunk]]

    async def _block_extremes(self, name: str, chunks: Sequence[int]) -> BlockExtremes:
        numbers = [self._first_chunk + chunk for chunk in chunks]
        if not numbers:
            return unpack_extremes(b"", b"", self._shape)
        extremes, positions = await self._driver.fetchrow(sql.EXTREMES, *self._key, name, numbers)
        return unpack_extremes(extremes, positions, self._shape)

    async def _read_blocks(self, series: int, blocks: Sequence[int]) -> None:
        """blocks  ascending"""
        if not blocks:
            return
        runs = list(_runs(blocks, self._shape.blocks))
        size, width = self._shape.block_bytes, self._shape.blocks
        chunks = [self._first_chunk + begin // width for begin, _ in runs]
        places = [begin % width * size for begin, _ in runs]
        sizes = [(end - begin) * size for begin, end in runs]
        packed = await self._driver.fetchval(sql.PARTS, *self._key, self._names[series], chunks, places, sizes)
        place = 0
        for begin, end in runs:
            for block in range(begin, end):
                self._read[series][block] = PackedBlock(packed, place, self._shape)
                place += size


def _shared_chunks(rows: Sequence[_Outlined], most: int) -> int:
    """How many of the first chunks have the same numbers and the same steps in all series."""
    if len({row.first for row in rows}) > 1:
        return 0
    hashes = [row.hashes or b"" for row in rows]
    for chunk in range(most):
        place = slice(chunk * HASH_BYTES, (chunk + 1) * HASH_BYTES)
        if any(each[place] != hashes[0][place] for each in hashes):
            return chunk
    return most


def _runs(blocks: Sequence[int], width: int) -> Iterator[tuple[int, int]]:
    """Each within a chunk: from which block to before which. The little between two of them is read along."""
    begin = end = blocks[0]
    for block in blocks:
        if block - end > _BLOCKS_READ_ALONG or block // width != begin // width:
            yield begin, end
            begin = block
        end = block + 1
    yield begin, end
