"""The extremes of any stretch by levels are those of its points."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from services.api.queries.charts.levels.deciding import SeriesChoice, Split
from services.api.queries.charts.levels.packing import (
    NO_HIGHEST,
    NO_LOWEST,
    PackedBlock,
    Shape,
    pack,
    unpack_extremes,
    unpack_outlines,
)
from services.api.queries.charts.time_series.extremes import Extreme

SHAPE: Final = Shape(block=4, blocks=3)
numbers = st.none() | st.integers(-3, 3).map(float) | st.just(-0.0) | st.floats(allow_nan=False, allow_infinity=False)


def extremes_by_levels(
    values: Sequence[float | None], bounds: Sequence[int], shape: Shape
) -> tuple[list[tuple[Extreme, Extreme]], set[int]]:
    """Of the stretches between ``bounds``, and the blocks that were looked into for that."""
    steps = [3 * n + 1 for n in range(len(values))]
    chunks = [
        pack(steps[start : start + shape.chunk], values[start : start + shape.chunk], shape)
        for start in range(0, len(values), shape.chunk)
    ]
    cut = sorted({bound // shape.chunk for bound in bounds if bound % shape.chunk})
    offsets = {chunk: (rank - chunk) * shape.blocks for rank, chunk in enumerate(cut)}
    splits = [Split.of(begin, end, offsets, shape) for begin, end in pairwise(bounds)]
    blocks = unpack_extremes(
        b"".join(chunks[each].extremes for each in cut), b"".join(chunks[each].positions for each in cut), shape
    )
    choice = SeriesChoice(unpack_outlines(b"".join(chunk.outline for chunk in chunks)).extremes, blocks, splits)
    wanted = set(choice.unsure_blocks())
    points = b"".join(chunk.points for chunk in chunks)
    choice.read({block: PackedBlock(points, block * shape.block_bytes, shape) for block in wanted})
    return [choice.extremes(place) for place in range(len(splits))], wanted


def extremes_of_points(values: Sequence[float | None], begin: int, end: int) -> tuple[Extreme, Extreme]:
    known = [(value, 3 * n + 1) for n, value in enumerate(values) if value is not None and begin <= n < end]
    if not known:
        return NO_LOWEST, NO_HIGHEST
    return min(known, key=lambda each: each[0]), max(known, key=lambda each: each[0])


@given(st.integers(1, 6).flatmap(lambda n: st.lists(numbers, min_size=12 * n, max_size=12 * n)), st.data())
def test_extremes_of_all_stretches(values: list[float | None], data: st.DataObject) -> None:
    bounds = sorted(data.draw(st.sets(st.integers(0, len(values)), min_size=2, max_size=12)))
    found, _ = extremes_by_levels(values, bounds, SHAPE)
    expected = [extremes_of_points(values, begin, end) for begin, end in pairwise(bounds)]
    assert found == expected
    signs = [[math.copysign(1, number) for pair in pairs for number, _ in (pair,)] for pairs in (*found, *expected)]
    assert signs[: len(found)] == signs[len(found) :]


def test_few_blocks_of_a_noisy_series_are_looked_into() -> None:
    chance = random.Random(7)
    shape = Shape(block=10, blocks=5)
    values = [chance.random() for _ in range(20_000)]
    bounds = [7, *range(203, 20_000, 203)]
    found, looked_into = extremes_by_levels(values, bounds, shape)
    assert found == [extremes_of_points(values, begin, end) for begin, end in pairwise(bounds)]
    assert len(looked_into) < len(bounds) / 4
