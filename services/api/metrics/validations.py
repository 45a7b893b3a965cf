"""Best and latest validation of a trial (docs/reference/experiments.md 9.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from libs.searchers.reports import read_number


class SearchGoal(Struct, frozen=True):
    """What the experiment of a trial improves; ``metric`` is None when it names nothing."""

    metric: str | None
    smaller_is_better: bool = True


class Score(Struct, frozen=True):
    """The searcher metric of a validation: as reported, and so that smaller is better."""

    value: float
    signed: float


def score(metrics: Mapping[str, Any], goal: SearchGoal) -> Score | None:
    """The score of a validation; None when the searcher metric is missing or no number."""
    value = None if goal.metric is None else read_number(metrics.get(goal.metric))
    if value is None:
        return None
    return Score(value, value if goal.smaller_is_better else -value)


def counts_as_validation(metrics: Mapping[str, Any], goal: SearchGoal) -> bool:
    """Whether a report can be the latest validation: it has the searcher metric, if there is one."""
    return goal.metric is None or goal.metric in metrics


def is_better(signed: float, best: float | None) -> bool:
    """Whether a signed value beats the best so far. NaN comes after all numbers; of equals the first stays."""
    if best is None:
        return True
    if math.isnan(signed):
        return False
    return math.isnan(best) or signed < best


class Validation(Struct, frozen=True):
    """A stored validation report."""

    id: int
    metrics: Mapping[str, Any]


class ValidationStanding(Struct, frozen=True):
    """What a trial's validations amount to: the best score, its row, and the row of the latest; None without any."""

    score: Score | None = None
    best_id: int | None = None
    latest_id: int | None = None


def standing(validations: Iterable[Validation], goal: SearchGoal) -> ValidationStanding:
    """The standing from scratch; ``validations`` in the order of their steps."""
    result = ValidationStanding()
    for validation in validations:
        result = advance(result, validation, goal)
    return result


def advance(before: ValidationStanding, validation: Validation, goal: SearchGoal) -> ValidationStanding:
    """The standing after one more validation, of a later step than all before it."""
    if not counts_as_validation(validation.metrics, goal):
        return before
    reached = score(validation.metrics, goal)
    if reached is None or not is_better(reached.signed, None if before.score is None else before.score.signed):
        return ValidationStanding(before.score, before.best_id, validation.id)
    return ValidationStanding(reached, validation.id, validation.id)
