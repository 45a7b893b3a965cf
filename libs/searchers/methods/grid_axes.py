"""The points of a grid: one axis per hyperparameter, and their product (docs/reference/experiments.md 2.3)."""

import itertools
import math
from typing import Any, assert_never

from libs.searchers.errors import InvalidSpace
from libs.searchers.sampling.space import Categorical, Const, Double, Int, Log, Node, SearchSpace


def grid_points(space: SearchSpace) -> list[dict[str, Any]]:
    """All points of the grid; axes in sorted key order, the first one varies slowest.

    Raises InvalidSpace when an int, double or log hyperparameter has no count.
    """
    keys = [key for key, _ in space.items]
    axes = [grid_axis(node, key) for key, node in space.items]
    return [dict(zip(keys, values, strict=True)) for values in itertools.product(*axes)]


def count_points(space: SearchSpace) -> int:
    """How many points ``grid_points`` would give, without laying any of them out: it may be more than memory holds."""
    return math.prod(_axis_length(node, key) for key, node in space.items)


def _axis_length(node: Node, key: str) -> int:
    match node:
        case SearchSpace():
            return count_points(node)
        case Const():
            return 1
        case Categorical(vals=vals):
            return len(vals)
        case Int():
            return min(_count(node, key), node.maxval - node.minval + 1)
        case Double() | Log():
            return _count(node, key)
        case _:
            assert_never(node)


def grid_axis(node: Node, key: str = "") -> list[Any]:
    """The values of one hyperparameter, ascending (categories in their own order); a nested space is one axis."""
    match node:
        case SearchSpace():
            return list(grid_points(node))
        case Const(val=val):
            return [val]
        case Categorical(vals=vals):
            return list(vals)
        case Int():
            return _whole_numbers(node.minval, node.maxval, _count(node, key))
        case Double():
            return _real_numbers(node.minval, node.maxval, _count(node, key))
        case Log():
            return [node.base**exponent for exponent in _real_numbers(node.minval, node.maxval, _count(node, key))]
        case _:
            assert_never(node)


def _count(node: Int | Double | Log, key: str) -> int:
    if node.count is None:
        raise InvalidSpace(f"{key}: grid search is in use but count was not provided")
    return node.count


def _whole_numbers(minval: int, maxval: int, count: int) -> list[int]:
    count = min(count, maxval - minval + 1)
    if count == 1:
        return [_round_ratio(minval + maxval, 2)]
    steps = count - 1
    return [_round_ratio(minval * steps + i * (maxval - minval), steps) for i in range(count)]


def _round_ratio(numerator: int, denominator: int) -> int:
    """Nearest whole number, halves away from zero; ``round`` would take halves to the even side."""
    magnitude = (2 * abs(numerator) + denominator) // (2 * denominator)
    return magnitude if numerator >= 0 else -magnitude


def _real_numbers(minval: float, maxval: float, count: int) -> list[float]:
    if count == 1:
        return [(minval + maxval) / 2]
    steps = count - 1
    # The last point is named, not computed: rounding must not push it past the end of the interval.
    return [*(minval + i * (maxval - minval) / steps for i in range(steps)), maxval]
