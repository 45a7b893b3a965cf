"""What a search would do, told before it runs: how many trials train for how long
(docs/reference/experiments.md 3.6)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from msgspec import Struct

from libs.searchers.config import (
    AdaptiveAshaConfig,
    AsyncHalvingConfig,
    GridConfig,
    RandomConfig,
    SingleConfig,
    parse_searcher,
)
from libs.searchers.methods.brackets import Bracket, plan_brackets, survivors
from libs.searchers.methods.grid_axes import count_points
from libs.searchers.sampling.space import parse_space


class PreviewTrial(Struct, frozen=True):
    """``count`` trials that train for ``value`` units of ``name``, or to completion if ``max_length``."""

    count: int
    name: str | None = None
    value: int | None = None
    max_length: bool = False


def preview(config_searcher: Mapping[str, Any], hyperparameters: Mapping[str, Any]) -> list[PreviewTrial]:
    """Trials of a search by the length of their training, shortest first; raises InvalidSearcher or InvalidSpace."""
    config = parse_searcher(config_searcher)
    match config:
        case SingleConfig():
            return [PreviewTrial(1, max_length=True)]
        case RandomConfig():
            return [PreviewTrial(config.max_trials, max_length=True)]
        case GridConfig():
            return [PreviewTrial(count_points(parse_space(hyperparameters)), max_length=True)]
        case AsyncHalvingConfig() | AdaptiveAshaConfig():
            stopped = count_stopped(plan_brackets(config))
            return [PreviewTrial(count, config.time_metric, units) for units, count in sorted(stopped.items()) if count]
        case _:
            assert_never(config)


def count_stopped(brackets: Sequence[Bracket]) -> Counter[int]:
    """Units -> trials that stop there, if every rung lets exactly its share go on and the last one none."""
    stopped: Counter[int] = Counter()
    for bracket in brackets:
        left = bracket.max_trials
        for units in bracket.rung_units[:-1]:
            going_on = survivors(left, bracket.divisor)
            stopped[units] += left - going_on
            left = going_on
        stopped[bracket.rung_units[-1]] += left
    return stopped
