"""Brackets of ASHA: trials share the rungs of their bracket, which decide who goes on.

A bracket with many rungs looks early and drops most trials; one with few rungs gives slow starters their chance.
Source: docs/reference/experiments.md 3.4 and 3.5. Counts are cut off, not rounded, and in floating point: the tables
there depend on it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from libs.searchers.errors import InvalidSearcher

MAX_RUNGS: Final = 1000
"""Far beyond any use; a divisor close to 1 would otherwise allow as many as fill the memory."""


class Bracket(Struct, frozen=True):
    """One independent ASHA: ``rung_units`` is the time at which each rung judges its trials, ascending."""

    rung_units: tuple[int, ...]
    divisor: float
    max_trials: int
    max_concurrent_trials: int


class BracketShare(NamedTuple):
    """What one bracket gets of a search."""

    depth: int
    max_trials: int
    max_concurrent_trials: int


class BracketConfig(Protocol):
    """What brackets are planned by; times are in units of ``time_metric``."""

    @property
    def max_time(self) -> int: ...

    @property
    def time_metric(self) -> str: ...

    @property
    def divisor(self) -> float: ...

    def most_rungs(self) -> int:
        """Rungs of the deepest bracket."""

    def shares(self) -> list[BracketShare]:
        """The share of each bracket, deepest first."""


def plan_brackets(config: BracketConfig) -> tuple[Bracket, ...]:
    """The brackets of a search, deepest first. Raises InvalidSearcher on absurd depths."""
    try:
        if config.most_rungs() > MAX_RUNGS:
            raise InvalidSearcher("invalid searcher configuration: too many rungs")
        return tuple(
            Bracket(
                rung_units(share.depth, config.max_time, config.divisor),
                config.divisor,
                share.max_trials,
                share.max_concurrent_trials,
            )
            for share in config.shares()
        )
    except OverflowError as error:
        raise InvalidSearcher("invalid searcher configuration: too many rungs") from error


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
