"""The form in which numbers of a long series are kept: chunks of blocks, with the extremes of each. Pure.

A chunk has equally many blocks, and a block equally many points, so that the place of a point follows from its number.
The steps of all points go up. Numbers are little endian: a step has four bytes, a number eight; a point that has no
finite number has NaN.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from services.api.queries.charts.time_series.extremes import Extreme, Numbers

NO_LOWEST: Final = (math.inf, 0)
NO_HIGHEST: Final = (-math.inf, 0)
HASH_BYTES: Final = 16
_OUTLINE: Final = Struct("<2d4i")
OUTLINE_BYTES: Final = _OUTLINE.size
_STEP_BYTES: Final = 4
_NUMBER_BYTES: Final = 8
Steps: TypeAlias = Sequence[int]


class Shape(NamedTuple):
    """block  points of a block, at most 256;  blocks  blocks of a chunk"""

    block: int
    blocks: int

    @property
    def chunk(self) -> int:
        """Points of a chunk."""
        return self.block * self.blocks

    @property
    def block_bytes(self) -> int:
        return self.block * (_STEP_BYTES + _NUMBER_BYTES)


STORED: Final = Shape(block=100, blocks=25)
"""What the tables hold: another shape needs a migration that empties them."""


class PackedChunk(NamedTuple):
    """A row of ``metric_chunks``."""

    first_step: int
    last_step: int
    extremes: bytes
    points: bytes
    outline: bytes
    positions: bytes
    steps_hash: bytes


class Extremes(NamedTuple):
    """Of chunks or of blocks in their order: lowest and highest numbers with their steps.

    What has no number has infinite ones, which nothing is higher or lower than.
    """

    lows: Sequence[float]
    low_steps: Steps
    highs: Sequence[float]
    high_steps: Steps


class Outlines(NamedTuple):
    """Of chunks in their order."""

    first_steps: Steps
    last_steps: Steps
    extremes: Extremes


class BlockExtremes(NamedTuple):
    """Of blocks in their order; where in a block its lowest and its highest number are, counted from 0."""

    first_steps: Steps
    extremes: Extremes
    low_positions: bytes
    high_positions: bytes


def pack(steps: Steps, numbers: Numbers, shape: Shape) -> PackedChunk:
    """The points of one chunk."""
    firsts: list[int] = []
    lowest: list[Extreme] = []
    highest: list[Extreme] = []
    positions: list[list[int]] = [[], []]
    points = bytearray()
    for start in range(0, shape.chunk, shape.block):
        block_steps = steps[start : start + shape.block]
        values = [math.nan if number is None else number for number in numbers[start : start + shape.block]]
        known = [value for value in values if value == value]  # noqa: PLR0124 - NaN
        firsts.append(block_steps[0])
        # Of equals the first.
        low, high = (values.index(min(known)), values.index(max(known))) if known else (0, 0)
        lowest.append((values[low], block_steps[low]) if known else NO_LOWEST)
        highest.append((values[high], block_steps[high]) if known else NO_HIGHEST)
        positions[0].append(low)
        positions[1].append(high)
        points += _block_struct(shape).pack(*block_steps, *values)
    extremes = _extremes_struct(shape).pack(
        *firsts, *(s for _, s in lowest), *(s for _, s in highest), *(n for n, _ in lowest), *(n for n, _ in highest)
    )
    # Both keep the first of equals.
    (low_number, low_step), (high_number, high_step) = min(lowest, key=_number_of), max(highest, key=_number_of)
    first, last = steps[0], steps[shape.chunk - 1]
    outline = _OUTLINE.pack(low_number, high_number, low_step, high_step, first, last)
    places = bytes(positions[0] + positions[1])
    return PackedChunk(first, last, extremes, bytes(points), outline, places, _hash_of(steps[: shape.chunk]))


def unpack_outlines(packed: bytes) -> Outlines:
    """Of one chunk after the other."""
    columns: Sequence[Sequence[Any]] = list(zip(*_OUTLINE.iter_unpack(packed), strict=True)) or [()] * 6
    lows, highs, low_steps, high_steps, firsts, lasts = columns
    return Outlines(firsts, lasts, Extremes(lows, low_steps, highs, high_steps))


def unpack_extremes(packed: bytes, positions: bytes, shape: Shape) -> BlockExtremes:
    """Of the blocks of one chunk after the other."""
    firsts, low_steps, high_steps, lows, highs = array("i"), array("i"), array("i"), array("d"), array("d")
    columns: Sequence[array[Any]] = (firsts, low_steps, high_steps, lows, highs)
    low_positions, high_positions = bytearray(), bytearray()
    width = shape.blocks
    place = 0
    for start in range(0, len(positions), 2 * width):
        for column in columns:
            end = place + column.itemsize * width
            column.frombytes(packed[place:end])
            place = end
        low_positions += positions[start : start + width]
        high_positions += positions[start + width : start + 2 * width]
    for column in columns:
        _from_little_endian(column)
    return BlockExtremes(
        firsts, Extremes(lows, low_steps, highs, high_steps), bytes(low_positions), bytes(high_positions)
    )


class PackedBlock(NamedTuple):
    """A block within what was read: the bytes, and where it begins in them."""

    packed: bytes
    place: int
    shape: Shape

    def steps(self) -> Steps:
        found = array("i")
        found.frombytes(self.packed[self.place : self.place + _STEP_BYTES * self.shape.block])
        _from_little_endian(found)
        return found

    def numbers(self, start: int, stop: int) -> array[float]:
        """From position ``start`` to before ``stop``; NaN where there is none."""
        first = self.place + _STEP_BYTES * self.shape.block
        found = array("d")
        found.frombytes(self.packed[first + _NUMBER_BYTES * start : first + _NUMBER_BYTES * stop])
        _from_little_endian(found)
        return found

    def step(self, position: int) -> int:
        start = self.place + _STEP_BYTES * position
        return int.from_bytes(self.packed[start : start + _STEP_BYTES], "little", signed=True)


def extremes_of(block: PackedBlock, start: int, stop: int) -> tuple[Extreme, Extreme]:
    """The lowest and the highest number of a part of a block, of equals the first."""
    values = block.numbers(start, stop)
    known: Sequence[float] = values
    # A sum is NaN if one of them is, and takes a fraction of the time that looking at each does.
    if math.isnan(sum(values)):
        known = [value for value in values if value == value]  # noqa: PLR0124 - NaN
        if not known:
            return NO_LOWEST, NO_HIGHEST
    low, high = min(known), max(known)
    return (low, block.step(start + values.index(low))), (high, block.step(start + values.index(high)))


def _number_of(extreme: Extreme) -> float:
    return extreme[0]


def _hash_of(steps: Steps) -> bytes:
    """What tells whether two chunks have the same steps."""
    return blake2b(Struct(f"<{len(steps)}i").pack(*steps), digest_size=HASH_BYTES).digest()


def _from_little_endian(column: array[Any]) -> None:
    if sys.byteorder != "little":
        column.byteswap()


@lru_cache
def _block_struct(shape: Shape) -> Struct:
    return Struct(f"<{shape.block}i{shape.block}d")


@lru_cache
def _extremes_struct(shape: Shape) -> Struct:
    return Struct(f"<{3 * shape.blocks}i{2 * shape.blocks}d")
