"""How many trials a search lays out at once, known before any of them is: a typing error must not fill the memory."""

from collections.abc import Mapping
from typing import Any, Final, assert_never

from libs.searchers.config import (
    AdaptiveAshaConfig,
    AsyncHalvingConfig,
    GridConfig,
    RandomConfig,
    SearcherConfig,
    SingleConfig,
    parse_searcher,
)
from libs.searchers.errors import InvalidSearcher
from libs.searchers.methods.brackets import initial_count, plan_brackets
from libs.searchers.methods.grid_axes import count_points
from libs.searchers.sampling.space import parse_space

MAX_AT_ONCE: Final = 100_000
"""Points of a grid, or trials that begin together. Trials that follow one another may be more."""


def check_size(searcher: Mapping[str, Any], hyperparameters: Mapping[str, Any]) -> None:
    """Raises InvalidSearcher for a search beyond ``MAX_AT_ONCE``, and whatever is wrong with it otherwise."""
    count = _at_once(parse_searcher(searcher), hyperparameters)
    if count > MAX_AT_ONCE:
        raise InvalidSearcher(
            f"{searcher['name']} search begins with more than {MAX_AT_ONCE} trials; "
            "lower max_concurrent_trials, max_trials or, in a grid, the count of hyperparameters"
        )


def _at_once(config: SearcherConfig, hyperparameters: Mapping[str, Any]) -> int:
    match config:
        case SingleConfig():
            return 1
        case RandomConfig():
            return min(config.max_trials, config.max_concurrent_trials or config.max_trials)
        case GridConfig():
            return count_points(parse_space(hyperparameters))
        case AsyncHalvingConfig() | AdaptiveAshaConfig():
            return sum(map(initial_count, plan_brackets(config)))
        case _:
            assert_never(config)
