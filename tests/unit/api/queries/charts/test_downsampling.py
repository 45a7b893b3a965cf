"""Fewer points, the same picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.api.queries.charts.batches import added
from services.api.queries.charts.downsampling import Downsampling

NAN = math.nan


def kept(rows: Sequence[Sequence[float | None]], limit: int, *, total: int | None = None) -> list[int]:
    """Positions of the points that are kept."""
    width = len(rows[0]) if rows else 1
    chosen = Downsampling[int](total=len(rows) if total is None else total, limit=limit, width=width)
    for position, numbers in enumerate(rows):
        chosen.add(position, numbers)
    return chosen.points()


@pytest.mark.parametrize(
    ("values", "limit", "positions"),
    [
        ([], 3, []),
        ([1], 1, [0]),
        ([1, 2, 3], 3, [0, 1, 2]),  # nothing to leave out
        ([0, 0, 9, 0, 0, -9, 0, 0], 4, [0, 2, 5, 7]),  # both ends and both extremes
        ([0, 0, 9, 0, 0, -9, 0, 0], 2, [2, 5]),  # extremes before ends
        ([0, 0, 9, 0, 0, -9, 0, 0], 1, [5]),
        ([5, 5, 5, 5, 5], 4, [0, 4]),  # of equals the first
        ([0, 3, 1, 2, 0, 4, 1, 2], 6, [0, 1, 4, 5, 7]),  # extremes of each half
        ([0, NAN, 1, None, 2], 4, [0, 4]),  # what is not finite is no extreme
        ([NAN, NAN, NAN, NAN, NAN], 4, [0, 4]),  # a series without numbers keeps its ends
    ],
)
def test_what_is_kept(values: list[float | None], limit: int, positions: list[int]) -> None:
    assert kept([[value] for value in values], limit) == positions


def test_every_series_keeps_its_extremes() -> None:
    rows = [[0.0, 5.0]] * 10
    rows[3], rows[6] = [9.0, 5.0], [0.0, -7.0]
    assert {3, 6} <= set(kept(rows, 6))


def test_points_that_come_beyond_the_total_are_left_out() -> None:
    assert kept([[n] for n in range(10)], 5, total=4) == [0, 1, 2, 3]


numbers = st.none() | st.floats()


@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=120)
    ),
    st.integers(1, 60),
)
def test_no_more_than_allowed_and_nothing_that_stands_out_is_lost(rows: list[list[float | None]], limit: int) -> None:
    found = kept(rows, limit)
    assert len(found) <= limit
    assert found == sorted(set(found))
    assert found == kept(rows, limit)
    if len(rows) <= limit:
        assert found == list(range(len(rows)))
        return
    assert found
    width = len(rows[0])
    if limit >= 2 + 2 * width:
        assert (found[0], found[-1]) == (0, len(rows) - 1)
        for column in range(width):
            finite = [v for row in rows if (v := row[column]) is not None and math.isfinite(v)]
            shown = [v for n in found if (v := rows[n][column]) is not None and math.isfinite(v)]
            if finite:
                assert (min(shown), max(shown)) == (min(finite), max(finite))


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_numbers_that_are_new(before: set[int], after: set[int]) -> None:
    assert list(added(sorted(before), sorted(after))) == sorted(after - before)
