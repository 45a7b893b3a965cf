"""Steps that are chosen from packages are those that ``Downsampling`` chooses point by point."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from services.api.queries.charts.downsampling import Downsampling
from services.api.queries.charts.time_series.extremes import ChosenSteps

numbers = st.none() | st.integers(-3, 3).map(float) | st.just(-0.0) | st.floats(allow_nan=False, allow_infinity=False)
rows_of = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=150)
)


def one_by_one(rows: Sequence[Sequence[float | None]], limit: int, total: int) -> list[int]:
    chosen = Downsampling[int](total=total, limit=limit, width=len(rows[0]))
    for position, row in enumerate(rows):
        chosen.add(10 * position, row)
    return chosen.points()


def in_packages(rows: Sequence[Sequence[float | None]], limit: int, total: int, size: int) -> list[int]:
    chosen = ChosenSteps(total=total, limit=limit, width=len(rows[0]))
    for start in range(0, len(rows), size):
        package = rows[start : start + size]
        chosen.add([10 * position for position in range(start, start + len(package))], list(zip(*package, strict=True)))
    return chosen.steps()


@given(rows_of, st.integers(1, 60), st.integers(1, 200), st.integers(-20, 20))
def test_packages_choose_as_points_do(rows: list[list[float | None]], limit: int, size: int, more: int) -> None:
    """more  by how many the total is wrong: reports come and go while somebody counts"""
    total = max(0, len(rows) + more)
    assert in_packages(rows, limit, total, size) == one_by_one(rows, limit, total)


def test_an_extreme_stays_wherever_packages_end() -> None:
    rows = [[math.sin(n / 7)] for n in range(1000)]
    rows[501] = [9.0]
    rows[502] = [-9.0]
    for size in (1, 3, 500, 501, 502, 503, 1000):
        found = in_packages(rows, 20, len(rows), size)
        assert {0, 5010, 5020, 9990} <= set(found)
        assert len(found) <= 20


def test_nothing_is_chosen_of_nothing() -> None:
    assert ChosenSteps(total=0, limit=5, width=1).steps() == []
