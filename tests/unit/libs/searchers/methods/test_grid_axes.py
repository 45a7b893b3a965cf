"""Grid axes: points per kind of hyperparameter, and the order of their product."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.searchers.errors import InvalidSpace
from libs.searchers.methods.grid_axes import count_points, grid_points
from libs.searchers.sampling.space import parse_space


def integers(minval: int, maxval: int, count: int) -> dict[str, Any]:
    return {"type": "int", "minval": minval, "maxval": maxval, "count": count}


def doubles(minval: float, maxval: float, count: int) -> dict[str, Any]:
    return {"type": "double", "minval": minval, "maxval": maxval, "count": count}


def logs(minval: float, maxval: float, count: int) -> dict[str, Any]:
    return {"type": "log", "base": 10, "minval": minval, "maxval": maxval, "count": count}


AXES = [  # docs/reference/experiments.md 2.3
    ("a constant is one point", {"type": "const", "val": [1, 2]}, [[1, 2]]),
    ("ints include both ends", integers(0, 4, 5), [0, 1, 2, 3, 4]),
    ("negative ints", integers(-4, -2, 3), [-4, -3, -2]),
    ("no more points than there are ints", integers(0, 1, 5), [0, 1]),
    ("one point is the middle, halves go up", integers(0, 1, 1), [1]),
    ("below zero halves go down", integers(-1, 0, 1), [-1]),
    ("inner points are rounded away from zero", integers(-5, 0, 3), [-5, -3, 0]),
    ("and above zero as well", integers(0, 5, 3), [0, 3, 5]),
    ("a single int", integers(3, 3, 4), [3]),
    ("one double is the middle", doubles(0, 5, 1), [2.5]),
    ("doubles include both ends", doubles(0, 1, 3), [0.0, 0.5, 1.0]),
    ("the last double is exact", doubles(0, 0.3, 4), [0.0, pytest.approx(0.1), pytest.approx(0.2), 0.3]),
    ("one log is the middle of the exponents", logs(-2, 2, 1), [1.0]),
    ("logs are spread over the exponents", logs(-2, 2, 3), [0.01, 1.0, 100.0]),
    ("categories keep their order", {"type": "categorical", "vals": ["b", "a", 1]}, ["b", "a", 1]),
    ("an empty nested space stays", {}, [{}]),
    ("a nested space is one axis", {"y": integers(0, 1, 2), "x": 7}, [{"x": 7, "y": 0}, {"x": 7, "y": 1}]),
]

NINE = [(0, 0), (0, 5), (0, 10), (10, 0), (10, 5), (10, 10), (20, 0), (20, 5), (20, 10)]


@pytest.mark.parametrize(("axis", "expected"), [case[1:] for case in AXES], ids=[case[0] for case in AXES])
def test_points_of_an_axis(axis: dict[str, Any], expected: list[Any]) -> None:
    assert [point["a"] for point in grid_points(parse_space({"a": axis}))] == expected


def test_the_first_axis_varies_slowest() -> None:
    space = {"2": integers(0, 10, 3), "1": integers(0, 20, 3)}
    assert grid_points(parse_space(space)) == [{"1": one, "2": two} for one, two in NINE]
    assert grid_points(parse_space({"n": space})) == [{"n": {"1": one, "2": two}} for one, two in NINE]


def test_many_axes_multiply() -> None:
    space = {f"x{i}": integers(0, 100, count) for i, count in enumerate([2, 2, 3, 3, 4, 5])}
    assert len(grid_points(parse_space(space))) == count_points(parse_space(space)) == 720


def test_an_empty_space_has_one_point() -> None:
    assert grid_points(parse_space({})) == [{}]


@pytest.mark.parametrize("kind", ["int", "double"])
def test_a_missing_count_is_refused(kind: str) -> None:
    space = parse_space({"lr": {"type": kind, "minval": 0, "maxval": 1}})
    with pytest.raises(InvalidSpace, match="lr: grid search is in use but count was not provided"):
        grid_points(space)
    with pytest.raises(InvalidSpace):
        count_points(space)


@given(minval=st.integers(-100, 100), width=st.integers(0, 100), count=st.integers(1, 30))
def test_ints_ascend_without_repeats(minval: int, width: int, count: int) -> None:
    points = [point["a"] for point in grid_points(parse_space({"a": integers(minval, minval + width, count)}))]
    assert points == sorted(set(points))
    assert len(points) == min(count, width + 1)
    assert count == 1 or (points[0], points[-1]) == (minval, minval + width)


def test_points_are_counted_without_being_laid_out() -> None:
    space = parse_space({"a": integers(0, 10**18, 10**18), "b": doubles(0, 1, 10**9), "c": {"d": logs(0, 1, 3)}})
    assert count_points(space) == 3 * 10**27
