"""Reports that are refused whatever the state of their trial (docs/reference/experiments.md 9.1)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from libs.errors import InvalidRequest
from services.api.metrics.groups import Kind
from services.api.metrics.report import MetricReport, make_report


def report(group: str = "training", step: int | None = 1, **avg: Any) -> MetricReport:
    return make_report(trial_id=1, run=1, group=group, step=step, end_time=datetime.now(UTC), avg=avg, batches=None)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("", "metric group cannot be empty"),
        ("a.b", "metric group cannot contain '.'"),
        ("x" * 256, "longer than 255"),
        ("a\0", "NUL"),
        ("avg_metrics", "summary"),
    ],
)
def test_impossible_groups(group: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        report(group)


@pytest.mark.parametrize("value", ["1", "NaN", True, [1], {}])
@pytest.mark.parametrize("name", ["epoch", "epochs"])
def test_epochs_are_numbers(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"cannot add metric with non numeric '{name}' value got "):
        report(**{name: value})


@pytest.mark.parametrize("value", [1, 0.5, None])
def test_numeric_epochs_pass(value: Any) -> None:
    assert report(epoch=value).measured.avg == {"epoch": value}


@pytest.mark.parametrize("avg", [{"a": "x\0"}, {"x\0": 1}, {"a": [{"b": "\0"}]}])
def test_nul_cannot_be_stored(avg: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="NUL"):
        report(**avg)


def test_text_that_only_looks_like_an_escaped_nul_passes() -> None:
    assert report(a="\\u0000").measured.avg == {"a": "\\u0000"}


@pytest.mark.parametrize("group", ["gpu", "cpu", "memory", "disk", "network"])
def test_profiling_has_no_steps(group: str) -> None:
    made = report(group, step=7, node={"cpu_util": 1})
    assert (made.kind, made.step) == (Kind.PROFILING, None)


def test_without_steps_a_report_is_of_step_0() -> None:
    assert report(step=None).step == 0
