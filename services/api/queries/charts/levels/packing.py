"""The form in which numbers of a long series are kept: chunks of blocks, each block with its extremes. Pure.

A chunk has equally many blocks, and a block equally many points, so that the place of a point follows from its number.
The steps of all points go up. Numbers are little endian: a step has four bytes, a number eight; a point that has no
finite number has NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from services.api.queries.charts.time_series.extremes import Extreme, Numbers

NO_LOWEST: Final = (math.inf, 0)
NO_HIGHEST: Final = (-math.inf, 0)


class Shape(NamedTuple):
    """block  points of a block;  blocks  blocks of a chunk"""

    block: int
    blocks: int

    @property
    def chunk(self) -> int:
        """Points of a chunk."""
        return self.block * self.blocks

    @property
    def block_bytes(self) -> int:
        return self.block * 12


STORED: Final = Shape(block=100, blocks=25)
"""What the tables hold: another shape needs a migration that empties them."""


class PackedChunk(NamedTuple):
    """A row of ``metric_chunks``."""

    first_step: int
    last_step: int
    extremes: bytes
    points: bytes


class Extremes(NamedTuple):
    """Of blocks in their order: first steps, and lowest and highest numbers with their steps.

    A block without a number has infinite ones, which nothing is higher or lower than.
    """

    first_steps: list[int]
    lows: list[float]
    low_steps: list[int]
    highs: list[float]
    high_steps: list[int]


def pack(steps: Sequence[int], numbers: Numbers, shape: Shape) -> PackedChunk:
    """The points of one chunk."""
    firsts: list[int] = []
    lowest: list[Extreme] = []
    highest: list[Extreme] = []
    points = bytearray()
    for start in range(0, shape.chunk, shape.block):
        block_steps = steps[start : start + shape.block]
        values = [math.nan if number is None else number for number in numbers[start : start + shape.block]]
        known = [value for value in values if value == value]  # noqa: PLR0124 - NaN
        firsts.append(block_steps[0])
        # Of equals the first.
        lowest.append((low := min(known), block_steps[values.index(low)]) if known else NO_LOWEST)
        highest.append((high := max(known), block_steps[values.index(high)]) if known else NO_HIGHEST)
        points += _block_struct(shape).pack(*block_steps, *values)
    extremes = _extremes_struct(shape).pack(
        *firsts, *(s for _, s in lowest), *(s for _, s in highest), *(n for n, _ in lowest), *(n for n, _ in highest)
    )
    return PackedChunk(steps[0], steps[shape.chunk - 1], extremes, bytes(points))


def unpack_extremes(packed: bytes, shape: Shape) -> Extremes:
    """Of one chunk after the other."""
    found = Extremes([], [], [], [], [])
    width = shape.blocks
    for values in _extremes_struct(shape).iter_unpack(packed):
        found.first_steps.extend(values[:width])
        found.low_steps.extend(values[width : 2 * width])
        found.high_steps.extend(values[2 * width : 3 * width])
        found.lows.extend(values[3 * width : 4 * width])
        found.highs.extend(values[4 * width :])
    return found


def unpack_blocks(packed: bytes, shape: Shape) -> Iterator[tuple[Sequence[int], Numbers]]:
    """Steps and numbers of one block after the other."""
    for values in _block_struct(shape).iter_unpack(packed):
        numbers: Numbers = values[shape.block :]
        # A sum is NaN if one of them is, and takes a fraction of the time that looking at each does.
        if math.isnan(sum(numbers)):  # type: ignore[arg-type]
            numbers = [None if number != number else number for number in numbers]  # noqa: PLR0124 - NaN
        yield values[: shape.block], numbers


@lru_cache
def _block_struct(shape: Shape) -> Struct:
    return Struct(f"<{shape.block}i{shape.block}d")


@lru_cache
def _extremes_struct(shape: Shape) -> Struct:
    return Struct(f"<{3 * shape.blocks}i{2 * shape.blocks}d")
