"""Finds the extremes of stretches from those of chunks and blocks, and which blocks have to be looked into for that.

A stretch that begins or ends within a block has a part of it. Of many such blocks no point is needed: the extremes of
the block are in that part, or none of its numbers is an extreme of the stretch. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from services.api.queries.charts.levels.packing import (
    NO_HIGHEST,
    NO_LOWEST,
    BlockExtremes,
    Extremes,
    PackedBlock,
    Shape,
    extremes_of,
)
from services.api.queries.charts.time_series.extremes import Extreme

ReadBlocks: TypeAlias = Mapping[int, PackedBlock]
"""Of one series, by their number."""


class Edge(NamedTuple):
    """The part of a block that belongs to a stretch.

    block        its number, from the first chunk on
    place        its place among the blocks whose extremes are known
    start, stop  positions in it
    """

    block: int
    place: int
    start: int
    stop: int

    @property
    def is_head(self) -> bool:
        """Whether the part is before the rest of the stretch, so that of equals its number counts: one that is behind
        it begins with its block."""
        return self.start > 0


class Split(NamedTuple):
    """Of what a stretch consists: its edges, and whole chunks and whole blocks in between.

    begin  its first position, from the first chunk on
    parts  in their order: whether they are chunks, and from which index to before which
    """

    begin: int
    edges: Sequence[Edge]
    parts: Sequence[tuple[bool, int, int]]

    @classmethod
    def of(cls, begin: int, end: int, offsets: Mapping[int, int], shape: Shape) -> Split:
        """offsets  by chunk whose blocks have known extremes: from the number of a block to its place among these"""
        size, width = shape
        # The first whole block, the first behind the whole ones, and how much of a block is before and behind them.
        first, head = divmod(begin, size)
        last, tail = divmod(end, size)
        edges: list[Edge] = []
        if head:
            place = first + offsets[first // width]
            if first == last:
                return cls(begin, [Edge(first, place, head, tail)], ())
            edges.append(Edge(first, place, head, size))
            first += 1
        if tail:
            edges.append(Edge(last, last + offsets[last // width], 0, tail))
        parts: list[tuple[bool, int, int]] = []
        first_chunk, last_chunk = -(-first // width), last // width
        within = min(first_chunk * width, last)
        if first < within:
            offset = offsets[first // width]
            parts.append((False, first + offset, within + offset))
        if first_chunk < last_chunk:
            parts.append((True, first_chunk, last_chunk))
        if first_chunk <= last_chunk and (behind := last % width):
            place = last + offsets[last_chunk]
            parts.append((False, place - behind, place))
        return cls(begin, edges, parts)


class SeriesChoice:
    """The extremes of each stretch of one series, as far as they are known."""

    def __init__(self, chunks: Extremes, blocks: BlockExtremes, splits: Sequence[Split]) -> None:
        self._chunks = chunks
        self._blocks = blocks
        self._found = [self._between(split) for split in splits]
        self._unsure: dict[int, list[Edge]] = {}
        for place, split in enumerate(splits):
            self._look_at_edges(place, split.edges)

    def unsure_blocks(self) -> Iterator[int]:
        """Those to be read."""
        for edges in self._unsure.values():
            yield from (edge.block for edge in edges)

    def is_empty(self, place: int) -> bool:
        """Whether no number of a stretch is known."""
        return self._found[place][0][0] == math.inf

    def read(self, read: ReadBlocks) -> None:
        """Look into the blocks that were unsure."""
        for place, edges in self._unsure.items():
            low, high = self._found[place]
            for edge in edges:
                lowest, highest = extremes_of(read[edge.block], edge.start, edge.stop)
                if _is_lower(lowest[0], low[0], edge):
                    low = lowest
                if _is_lower(-highest[0], -high[0], edge):
                    high = highest
            self._found[place] = low, high
        self._unsure = {}

    def extremes(self, place: int) -> tuple[Extreme, Extreme]:
        return self._found[place]

    def _between(self, split: Split) -> tuple[Extreme, Extreme]:
        """Of equals the first, as everywhere."""
        low, high = NO_LOWEST, NO_HIGHEST
        for are_chunks, begin, end in split.parts:
            source = self._chunks if are_chunks else self._blocks.extremes
            lows, highs = source.lows[begin:end], source.highs[begin:end]
            if (number := min(lows)) < low[0]:
                low = number, source.low_steps[begin + lows.index(number)]
            if (number := max(highs)) > high[0]:
                high = number, source.high_steps[begin + highs.index(number)]
        return low, high

    def _look_at_edges(self, place: int, edges: Sequence[Edge]) -> None:
        low, high = self._found[place]
        (lows, low_steps, highs, high_steps), blocks = self._blocks.extremes, self._blocks
        low_outside, high_outside = [], []
        for edge in edges:
            _, index, start, stop = edge
            if lows[index] <= low[0] and _is_lower(lows[index], low[0], edge):
                if start <= blocks.low_positions[index] < stop:
                    low = lows[index], low_steps[index]
                else:
                    low_outside.append(edge)
            if highs[index] >= high[0] and _is_lower(-highs[index], -high[0], edge):
                if start <= blocks.high_positions[index] < stop:
                    high = highs[index], high_steps[index]
                else:
                    high_outside.append(edge)
        self._found[place] = low, high
        if not (low_outside or high_outside):
            return
        # What was found at the other edge may have settled it.
        unsure = [
            edge
            for edge in edges
            if (edge in low_outside and _is_lower(lows[edge.place], low[0], edge))
            or (edge in high_outside and _is_lower(-highs[edge.place], -high[0], edge))
        ]
        if unsure:
            self._unsure[place] = unsure


def _is_lower(number: float, than: float, edge: Edge) -> bool:
    """Whether it counts instead of what is known of the rest of the stretch; infinity is no number."""
    return number < than or (number == than and edge.is_head and number != math.inf)
