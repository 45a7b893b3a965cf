"""Reads a validation report for ASHA: how far a trial is, and how good.

Metrics are whatever the user's code reports. A number that is not finite arrives as a string, because JSON has no
spelling for it. Source: docs/reference/experiments.md 3.4 and 9.1.
"""

import math
from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

SpelledInfinity = Literal["Infinity", "-Infinity"]
SPELLED_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Goal(Struct, frozen=True):
    """Which metric a search improves, and which one measures the time spent on it."""

    metric: str
    time_metric: str
    smaller_is_better: bool = True


class Report(Struct, frozen=True):
    """One validation as ASHA compares it; ``value``: smaller is better, and never NaN."""

    time: int
    value: float


def parse_report(metrics: Mapping[str, Any], goal: Goal) -> Report | None:
    """Read a report; None when it lacks a metric that the search needs (``missing_metrics`` says which).

    NaN is the worst value there is, whichever way the metric points.
    """
    value = read_number(metrics.get(goal.metric))
    time = _read_time(metrics, goal)
    if value is None or time is None:
        return None
    if math.isnan(value):
        return Report(time, math.inf)
    return Report(time, value if goal.smaller_is_better else -value)


def missing_metrics(metrics: Mapping[str, Any], goal: Goal) -> tuple[str, ...]:
    """Names of the metrics that the search needs and this report does not give as numbers; a time must be finite."""
    missing = []
    if read_number(metrics.get(goal.metric)) is None:
        missing.append(goal.metric)
    if _read_time(metrics, goal) is None:
        missing.append(goal.time_metric)
    return tuple(dict.fromkeys(missing))


def _read_time(metrics: Mapping[str, Any], goal: Goal) -> int | None:
    time = read_number(metrics.get(goal.time_metric))
    return None if time is None or not math.isfinite(time) else int(time)


def read_number(value: Any) -> float | None:
    """The float that a JSON number or a spelled float stands for, else None; true and false are not numbers.

    Whole numbers too large for a float become infinite.
    """
    if isinstance(value, str):
        return SPELLED_FLOATS.get(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def spell_infinity(value: float) -> float | SpelledInfinity:
    """What JSON can carry instead of ``value``, which is not NaN."""
    if math.isfinite(value):
        return value
    return "Infinity" if value > 0 else "-Infinity"
