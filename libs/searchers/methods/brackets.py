"""How ASHA divides its trials: brackets of different depth, the rungs of each, and who goes on from a rung.

A bracket with many rungs looks early and drops most trials; one with few rungs gives slow starters their chance.
Source: docs/reference/experiments.md 3.4 and 3.5. Counts are cut off, not rounded, and in floating point: the tables
there depend on it.
"""

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from libs.searchers.config import AdaptiveAshaConfig, AsyncHalvingConfig, Mode
from libs.searchers.errors import InvalidSearcher

MAX_RUNGS: Final = 1000
"""Far beyond any use; a divisor close to 1 would otherwise allow as many as fill the memory."""


class Bracket(Struct, frozen=True):
    """One independent ASHA: ``rung_units`` is the time at which each rung judges its trials, ascending."""

    rung_units: tuple[int, ...]
    divisor: float
    max_trials: int
    max_concurrent_trials: int


def plan_brackets(config: AsyncHalvingConfig | AdaptiveAshaConfig) -> tuple[Bracket, ...]:
    """The brackets of a search, deepest first; async_halving has one. Raises InvalidSearcher on absurd depths."""
    try:
        if _most_rungs(config) > MAX_RUNGS:
            raise InvalidSearcher("invalid searcher configuration: too many rungs")
        return _plan(config)
    except OverflowError as error:
        raise InvalidSearcher("invalid searcher configuration: too many rungs") from error


def _plan(config: AsyncHalvingConfig | AdaptiveAshaConfig) -> tuple[Bracket, ...]:
    if isinstance(config, AsyncHalvingConfig):
        depths, trials, concurrency = [config.num_rungs], [config.max_trials], [config.max_concurrent_trials]
    else:
        depths = sorted(config.bracket_rungs or choose_depths(config.mode, deepest(config)), reverse=True)
        trials = split_trials(config.max_trials, config.divisor, depths)
        concurrency = split_concurrency(config.max_concurrent_trials, config.divisor, trials)
    return tuple(
        Bracket(rung_units(depth, config.max_time, config.divisor), config.divisor, bracket_trials, concurrent)
        for depth, bracket_trials, concurrent in zip(depths, trials, concurrency, strict=True)
    )


def _most_rungs(config: AsyncHalvingConfig | AdaptiveAshaConfig) -> int:
    if isinstance(config, AsyncHalvingConfig):
        return config.num_rungs
    return max(config.bracket_rungs, default=0) or deepest(config)


def deepest(config: AdaptiveAshaConfig) -> int:
    """Most rungs that still make sense: each one divides both the time and the trials by the divisor."""
    base = math.log(config.divisor)
    by_time = int(math.log(config.max_time) / base) + 1
    by_trials = int(math.log(config.max_trials) / base) + 1
    return min(config.max_rungs, by_time, by_trials)


def choose_depths(mode: Mode, rungs: int) -> list[int]:
    """Rungs of each bracket, ascending, when the deepest one has ``rungs``."""
    shallowest = {Mode.AGGRESSIVE: rungs, Mode.STANDARD: (rungs - 1) // 2 + 1, Mode.CONSERVATIVE: 1}[mode]
    return list(range(shallowest, rungs + 1))


def split_trials(max_trials: int, divisor: float, depths: Sequence[int]) -> list[int]:
    """Trials of each bracket, so that all spend about the same time; what rounding leaves over goes to the first."""
    weights = [divisor ** (depth - 1) / depth for depth in depths]
    total = sum(weights)
    trials = [max(int(weight / total * max_trials), 1) for weight in weights]
    trials[0] += max(max_trials - sum(trials), 0)
    return trials


def split_concurrency(max_concurrent: int, divisor: float, trials: Sequence[int]) -> list[int]:
    """Trials of each bracket that run at once, at least one each; 0 gives each what the last bracket can fill."""
    brackets = len(trials)
    if max_concurrent == 0:
        return [max(trials[-1], int(divisor))] * brackets
    share, rest = divmod(max(max_concurrent, brackets), brackets)
    return [share + 1 if index < rest else share for index in range(brackets)]


def rung_units(num_rungs: int, max_time: int, divisor: float) -> tuple[int, ...]:
    """The time each rung judges at: the last one at ``max_time``, every earlier one ``divisor`` times sooner."""
    return tuple(max(int(max_time / divisor ** (num_rungs - 1 - i)), 1) for i in range(num_rungs))


def initial_count(bracket: Bracket) -> int:
    """Trials a bracket begins with; without a limit, as many as let one reach the last rung."""
    wanted = bracket.max_concurrent_trials or int(bracket.divisor ** (len(bracket.rung_units) - 1))
    return min(wanted, bracket.max_trials)


def survivors(reported: int, divisor: float) -> int:
    """How many of the trials that reported at a rung go on; the first one always does."""
    return max(int(reported / divisor), 1)
