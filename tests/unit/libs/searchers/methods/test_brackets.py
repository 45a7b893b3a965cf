"""Brackets: how many rungs and trials each one gets, and the time at which its rungs judge."""

from typing import Any

import pytest

from libs.searchers.config import parse_searcher
from libs.searchers.errors import InvalidSearcher
from libs.searchers.methods.adaptive_asha import AdaptiveAshaConfig, deepest
from libs.searchers.methods.async_halving import AsyncHalvingConfig
from libs.searchers.methods.brackets import (
    plan_brackets,
    rung_units,
    split_concurrency,
    split_trials,
    survivors,
)


def adaptive(mode: str, max_time: int, max_trials: int, divisor: float, concurrent: int, **more: Any) -> dict[str, Any]:
    return {
        "name": "adaptive_asha",
        "metric": "loss",
        "time_metric": "batches",
        "mode": mode,
        "max_time": max_time,
        "max_trials": max_trials,
        "divisor": divisor,
        "max_concurrent_trials": concurrent,
        **more,
    }


UNITS = [  # docs/reference/experiments.md 3.4
    ((3, 9, 3), (1, 3, 9)),
    ((4, 10, 2), (1, 2, 5, 10)),
    ((1, 9, 3), (9,)),
    ((3, 900, 3), (100, 300, 900)),
    ((3, 2, 4), (1, 1, 2)),
]
TRIALS = [  # 3.5
    ((20, 3, [3, 2, 1]), [12, 5, 3]),
    ((50, 3, [4, 3]), [35, 15]),
    ((50, 4, [3, 2]), [37, 13]),
    ((100, 4, [4, 3, 2]), [70, 22, 8]),
]
CONCURRENCY = [((0, 3, [9, 3, 1]), [3, 3, 3]), ((11, 3, [9, 3, 1]), [4, 4, 3]), ((0, 4, [40, 10]), [10, 10])]

PLANS = [  # 3.5; rungs, trials, concurrency of each bracket
    (adaptive("standard", 100, 10, 4, 2), [(2, 7, 1), (1, 3, 1)], [(25, 100), (100,)]),
    (
        adaptive("conservative", 1000, 10, 3, 5),
        [(3, 7, 2), (2, 2, 2), (1, 1, 1)],
        [(111, 333, 1000), (333, 1000), (1000,)],
    ),
    (
        adaptive("standard", 100, 100, 4, 16),
        [(4, 70, 6), (3, 22, 5), (2, 8, 5)],
        [(1, 6, 25, 100), (6, 25, 100), (25, 100)],
    ),
    (adaptive("aggressive", 100, 100, 4, 16), [(4, 100, 16)], [(1, 6, 25, 100)]),
    (
        adaptive("conservative", 100, 100, 4, 16),
        [(4, 67, 4), (3, 21, 4), (2, 8, 4), (1, 4, 4)],
        [(1, 6, 25, 100), (6, 25, 100), (25, 100), (100,)],
    ),
    (adaptive("standard", 1000, 16, 4, 16), [(3, 12, 8), (2, 4, 8)], [(62, 250, 1000), (250, 1000)]),
    (
        adaptive("standard", 256, 64, 4, 16),
        [(4, 45, 6), (3, 14, 5), (2, 5, 5)],
        [(4, 16, 64, 256), (16, 64, 256), (64, 256)],
    ),
    (adaptive("standard", 16, 300, 4, 0), [(3, 219, 81), (2, 81, 81)], [(1, 4, 16), (4, 16)]),
    (adaptive("standard", 400, 5, 4, 16), [(2, 4, 8), (1, 1, 8)], [(100, 400), (400,)]),
    (
        adaptive("standard", 100, 20, 3, 16, bracket_rungs=[1, 3, 2]),
        [(3, 12, 6), (2, 5, 5), (1, 3, 5)],
        [(11, 33, 100), (33, 100), (100,)],
    ),
]


@pytest.mark.parametrize(("arguments", "expected"), UNITS)
def test_rungs_are_a_divisor_apart(arguments: tuple[int, int, float], expected: tuple[int, ...]) -> None:
    assert rung_units(*arguments) == expected


@pytest.mark.parametrize(("arguments", "expected"), TRIALS)
def test_trials_are_split_by_weight(arguments: tuple[int, float, list[int]], expected: list[int]) -> None:
    assert split_trials(*arguments) == expected


@pytest.mark.parametrize(("arguments", "expected"), CONCURRENCY)
def test_concurrency_is_split_evenly(arguments: tuple[int, float, list[int]], expected: list[int]) -> None:
    assert split_concurrency(*arguments) == expected


@pytest.mark.parametrize(("section", "sizes", "units"), PLANS)
def test_plans(section: dict[str, Any], sizes: list[tuple[int, int, int]], units: list[tuple[int, ...]]) -> None:
    config = parse_searcher(section).config
    assert isinstance(config, AdaptiveAshaConfig)
    brackets = plan_brackets(config)
    assert [(len(b.rung_units), b.max_trials, b.max_concurrent_trials) for b in brackets] == sizes
    assert [bracket.rung_units for bracket in brackets] == units


def test_depth_is_cut_off_in_floating_point() -> None:
    config = parse_searcher(adaptive("aggressive", 1000, 100_000, 10, 16)).config
    assert isinstance(config, AdaptiveAshaConfig)
    assert deepest(config) == 3


@pytest.mark.parametrize(("reported", "expected"), [(1, 1), (2, 1), (5, 1), (6, 2), (7, 2), (9, 3)])
def test_one_in_divisor_goes_on_and_the_first_always(reported: int, expected: int) -> None:
    assert survivors(reported, 3) == expected


def test_absurd_depths_are_refused() -> None:
    config = AsyncHalvingConfig(metric="loss", max_time=9, time_metric="batches", max_trials=8, num_rungs=10_000)
    with pytest.raises(InvalidSearcher, match="too many rungs"):
        plan_brackets(config)


@pytest.mark.parametrize(
    "more", [{"max_rungs": 10**9}, {"bracket_rungs": [10**9]}, {"max_rungs": 2000}], ids=["limit", "depth", "thousands"]
)
def test_a_divisor_close_to_one_does_not_make_endless_rungs(more: dict[str, Any]) -> None:
    config = parse_searcher(adaptive("conservative", 10**18, 10**18, 1.000001, 4, **more)).config
    assert isinstance(config, AdaptiveAshaConfig)
    with pytest.raises(InvalidSearcher, match="too many rungs"):
        plan_brackets(config)
