"""Reading validation reports: what ASHA compares, and what counts as missing."""

import math
from typing import Any

import pytest
from msgspec import Struct

from libs.searchers.reports import Goal, Report, missing_metrics, parse_report

LOSS = Goal("loss", "batches")
ACCURACY = Goal("acc", "batches", smaller_is_better=False)


class Case(Struct):
    name: str
    metrics: dict[str, Any]
    report: Report | None
    goal: Goal = LOSS
    missing: tuple[str, ...] = ()


CASES = [  # docs/reference/experiments.md 3.4
    Case("smaller is better", {"loss": 0.25, "batches": 2}, Report(2, 0.25)),
    Case("larger is better turns the sign", {"acc": 0.2, "batches": 2}, Report(2, -0.2), ACCURACY),
    Case("any name measures time", {"loss": 1, "my_time": 7, "x": "y"}, Report(7, 1.0), Goal("loss", "my_time")),
    Case("time is cut off", {"loss": 1.0, "batches": 2.9}, Report(2, 1.0)),
    Case("NaN is the worst loss", {"loss": "NaN", "batches": 1}, Report(1, math.inf)),
    Case("NaN is the worst accuracy", {"acc": math.nan, "batches": 1}, Report(1, math.inf), ACCURACY),
    Case("infinite accuracy is the best", {"acc": "Infinity", "batches": 1}, Report(1, -math.inf), ACCURACY),
    Case("infinite loss", {"loss": "-Infinity", "batches": 1}, Report(1, -math.inf)),
    Case("whole numbers of any size", {"loss": -(10**400), "batches": 1}, Report(1, -math.inf)),
    Case("no metric", {"batches": 1}, None, missing=("loss",)),
    Case("no time", {"loss": 1.0}, None, missing=("batches",)),
    Case("nothing", {}, None, missing=("loss", "batches")),
    Case("text is not a number", {"loss": "0.5", "batches": 1}, None, missing=("loss",)),
    Case("true is not a number", {"loss": True, "batches": 1}, None, missing=("loss",)),
    Case("null is not a number", {"loss": None, "batches": 1}, None, missing=("loss",)),
    Case("time is finite", {"loss": 1.0, "batches": "NaN"}, None, missing=("batches",)),
    Case("one name for both", {"batches": "Infinity"}, None, Goal("batches", "batches"), ("batches",)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reports_are_read_or_said_to_lack_something(case: Case) -> None:
    assert parse_report(case.metrics, case.goal) == case.report
    assert missing_metrics(case.metrics, case.goal) == case.missing
