"""Summary metrics: the table of docs/reference/experiments.md 9.3."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.api.metrics.summary import GroupSummary, decode_summary, fold, fold_more


def summarise(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """The summary as it is stored and read again, report by report."""
    stored = "{}"
    for metrics in reports:
        trial = decode_summary(stored)
        fold(trial.setdefault("g", {}), metrics, newest=True)
        stored = msgspec.json.encode(trial).decode()
    return msgspec.json.decode(stored)["g"]


def number(count: int, low: Any, high: Any, total: Any, mean: Any, **last: Any) -> dict[str, Any]:
    return {"type": "number", "count": count, "min": low, "max": high, "sum": total, "mean": mean, **last}


@dataclass(frozen=True)
class Case:
    name: str
    reports: list[dict[str, Any]]
    summary: dict[str, Any]


NAN, INF, NINF = "NaN", "Infinity", "-Infinity"
CASES = [
    Case(
        "numbers over the reports that have them",
        [{"a": 1, "b": -0.5}, {"a": 1.5, "b": 0}, {"a": 2}],
        {"a": number(3, 1, 2, 4.5, 1.5, last=2), "b": number(2, -0.5, 0, -0.5, -0.25)},
    ),
    Case("a string", [{"a": "a"}], {"a": {"type": "string", "last": "a"}}),
    Case(
        "differing types become a string for good",
        [{"a": "a", "b": -0.5}, {"a": 1.67, "b": 0.3, "c": "test"}, {"a": "c", "b": [{"loss": 5}]}],
        {
            "a": {"type": "string", "last": "c"},
            "b": {"type": "string", "last": [{"loss": 5}]},
            "c": {"type": "string"},
        },
    ),
    Case(
        "non-finite first",
        [{"a": NAN, "b": NINF}, {"a": 1, "b": INF}],
        {"a": number(2, NAN, NAN, NAN, NAN, last=1), "b": number(2, NINF, INF, NAN, NAN, last=INF)},
    ),
    Case(
        "non-finite last",
        [{"a": 1, "b": INF}, {"a": NAN, "b": NINF}],
        {"a": number(2, NAN, NAN, NAN, NAN, last=NAN), "b": number(2, NINF, INF, NAN, NAN, last=NINF)},
    ),
    Case("numbers in quotes are strings", [{"b": "1.5"}, {"b": "1"}], {"b": {"type": "string", "last": "1"}}),
    *(
        Case(f"dates: {first} {second}", [{"c": first}, {"c": second}], {"c": {"type": "date", "last": second}})
        for first, second in [
            ("2021-03-15T13:32:18.91626111Z", "2022-03-15T13:32:18Z"),
            ("2021-03-15T13:32:18", "2021-03-15T13:32:18.1+02:00"),
            ("2021-03-15T13:32:18-07:30", "2021-03-15T13:32:18.000000000000"),
        ]
    ),
    Case(
        "dates have digits of ASCII",
        [{"c": "\u0662021-03-15T13:32:18"}],
        {"c": {"type": "string", "last": "\u0662021-03-15T13:32:18"}},
    ),
    Case("an object", [{"d": {"d": 1}}, {"d": {}}], {"d": {"type": "object", "last": {}}}),
    Case("booleans", [{"e": False}, {"e": True}], {"e": {"type": "boolean", "last": True}}),
    Case("arrays", [{"f": []}, {"f": [{"a": "b"}]}], {"f": {"type": "array", "last": [{"a": "b"}]}}),
    Case("null", [{"g": None}, {"g": None}], {"g": {"type": "null"}}),
    *(
        Case(f"mixed: {first!r} {second!r}", [{"x": first}, {"x": second}], {"x": {"type": "string", "last": second}})
        for first, second in [
            (1.0, "1.5"),
            (True, "true"),
            ("01999218", "2021-03-15T13:32:18Z"),
            ([], {}),
            (False, "yes"),
            (None, 1.9),
            (True, 1),
        ]
    ),
    Case("boolean, then null", [{"e": False}, {"e": None}], {"e": {"type": "string"}}),
    Case("a report of nothing keeps the group", [{}], {}),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_summary_of_reports(case: Case) -> None:
    assert summarise(case.reports) == case.summary


def test_an_older_report_counts_but_is_not_the_last() -> None:
    group: GroupSummary = {}
    fold(group, {"loss": 2.0}, newest=True)
    fold(group, {"loss": 4.0, "old": 1}, newest=False)
    assert (group["loss"].count, group["loss"].last, group["old"].last) == (2, 2.0, msgspec.UNSET)


def test_metrics_that_come_later_for_the_same_step_leave_the_others_alone() -> None:
    whole: GroupSummary = {}
    fold(whole, {"a": 1, "b": 2}, newest=True)
    parts: GroupSummary = {}
    fold(parts, {"a": 1}, newest=True)
    fold_more(parts, {"b": 2}, newest=True)
    assert parts == whole


VALUES = st.one_of(
    st.integers(-(2**53), 2**53),
    st.sampled_from([NAN, INF, NINF, "word", "2021-03-15T13:32:18Z", None, True, [], {}]),
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), min_size=1))
def test_last_is_what_the_newest_report_says(reports: list[dict[str, Any]]) -> None:
    summary = summarise(reports)
    assert set(summary) == {name for report in reports for name in report}
    for name, metric in summary.items():
        assert metric.get("last") == reports[-1].get(name)
        given_values = [report[name] for report in reports if name in report]
        if metric["type"] == "number":
            assert metric["count"] == len(given_values)
