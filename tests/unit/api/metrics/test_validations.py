"""Best and latest validation (docs/reference/experiments.md 9.4)."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest

from services.api.metrics.validations import SearchGoal, Validation, standing


@dataclass(frozen=True)
class Case:
    name: str
    losses: list[Any]
    best: int | None
    latest: int | None
    smaller_is_better: bool = True


MISSING = object()
CASES = [
    Case("none", [], None, None),
    Case("the smallest", [3, 1, 2], 2, 3),
    Case("the largest", [3, 5, 2], 2, 3, smaller_is_better=False),
    Case("of equals the first", [1, 1.0, 1], 1, 3),
    Case("a number beats NaN", ["NaN", 7], 2, 2),
    Case("NaN beats nothing but nothing", [7, "NaN"], 1, 2),
    Case("NaN is better than none", ["NaN", "NaN"], 1, 2),
    Case("a number beats NaN, larger is better", ["NaN", 7], 2, 2, smaller_is_better=False),
    Case("infinities are numbers", ["Infinity", "-Infinity", 0], 2, 3),
    Case("reports without the metric do not count", [1, MISSING], 1, 1),
    Case("what is no number is never best", [2, "great"], 1, 2),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_standing(case: Case) -> None:
    goal = SearchGoal("loss", case.smaller_is_better)
    rows = [
        Validation(ident, {"other": 1} if loss is MISSING else {"loss": loss})
        for ident, loss in enumerate(case.losses, start=1)
    ]
    found = standing(rows, goal)
    assert (found.best_id, found.latest_id) == (case.best, case.latest)


def test_the_value_is_kept_as_reported_and_so_that_smaller_is_better() -> None:
    found = standing([Validation(1, {"acc": 0.9})], SearchGoal("acc", smaller_is_better=False)).score
    assert found is not None
    assert (found.value, found.signed) == (0.9, -0.9)


def test_without_a_searcher_metric_the_last_validation_is_the_latest() -> None:
    found = standing([Validation(1, {}), Validation(2, {"a": 1})], SearchGoal(None))
    assert (found.best_id, found.latest_id) == (None, 2)
