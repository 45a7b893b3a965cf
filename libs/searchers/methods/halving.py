"""Configuration that both kinds of ASHA share, and what follows from it before a search runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from libs.searchers.methods.brackets import Bracket, BracketConfig, initial_count, plan_brackets, survivors
from libs.searchers.methods.definition import DEFAULT_CONCURRENT_TRIALS, Concurrency, Positive, PreviewTrial
from libs.searchers.reports import Goal
from libs.searchers.sampling.space import SearchSpace
from libs.shapes.shape import Fields, flag, number, text, whole

Divisor = Annotated[float, Meta(gt=1)]
"""One in ``divisor`` trials goes on from a rung to the next."""
DEFAULT_DIVISOR: Final = 4

FIELDS: Final[Fields] = {
    "max_trials": whole(1),
    "max_time": whole(1),
    "time_metric": text,
    "divisor": number(above=1),
    "max_concurrent_trials": whole(0),
    "stop_once": flag,
}
DEFAULTS: Final[Mapping[str, Any]] = {
    "divisor": DEFAULT_DIVISOR,
    "max_concurrent_trials": DEFAULT_CONCURRENT_TRIALS,
}


class HalvingConfig(Struct, frozen=True, kw_only=True):
    """What both kinds of ASHA share; times are in units of ``time_metric``."""

    metric: str
    max_time: Positive
    time_metric: str
    max_trials: Positive
    smaller_is_better: bool = True
    divisor: Divisor = float(DEFAULT_DIVISOR)
    max_concurrent_trials: Concurrency = DEFAULT_CONCURRENT_TRIALS

    @property
    def goal(self) -> Goal:
        return Goal(self.metric, self.time_metric, self.smaller_is_better)


def count_at_once(config: BracketConfig, hyperparameters: Mapping[str, Any]) -> int:
    return sum(map(initial_count, plan_brackets(config)))


def preview(config: BracketConfig, hyperparameters: Mapping[str, Any]) -> list[PreviewTrial]:
    stopped = count_stopped(plan_brackets(config))
    return [PreviewTrial(count, config.time_metric, units) for units, count in sorted(stopped.items()) if count]


def most_refusals(config: HalvingConfig, space: SearchSpace) -> int:
    """As many as the search is to have trials at all may be replaced."""
    return config.max_trials + 1


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
