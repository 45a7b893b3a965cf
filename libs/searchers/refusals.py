"""When a search has to give up: the code refuses whatever hyperparameters it is given.

A refused trial says nothing about the search and is replaced, so a mistake in the code would otherwise be replaced for
ever. Source: docs/reference/experiments.md 3.1 to 3.4 and 5.2 (early exit).
"""

from typing import assert_never

from msgspec import Struct

from libs.searchers.actions import Create
from libs.searchers.config import (
    AdaptiveAshaConfig,
    AsyncHalvingConfig,
    GridConfig,
    RandomConfig,
    SearcherConfig,
    SingleConfig,
)
from libs.searchers.methods.grid_axes import count_points
from libs.searchers.sampling.space import Space


class Refusals(Struct):
    """Trials refused one after the other; ``withheld`` waits until one of those that still run shows what it is."""

    in_a_row: int = 0
    withheld: list[Create] = []


def most_refusals(config: SearcherConfig, space: Space) -> int | None:
    """How many trials in a row may be refused, the last of them without a replacement; None is any number.

    A search may replace as many in a row as it is to have trials at all. A grid replaces none, so that it is all of its
    points; a single trial is no search.
    """
    match config:
        case SingleConfig():
            return None
        case GridConfig():
            return count_points(space)
        case RandomConfig() | AsyncHalvingConfig() | AdaptiveAshaConfig():
            return config.max_trials + 1
        case _:
            assert_never(config)
