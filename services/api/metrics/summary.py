"""Summary metrics: what a trial's reports amount to, per group and metric, kept up to date report by report.

A summary is built by folding reports in the order of their steps, so a recomputation after a roll-back arrives at what
the reports that survived would have given one by one. Source: docs/reference/experiments.md 9.3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from libs.searchers.reports import SPELLED_FLOATS, read_number
from services.api.wire.base import Double, double

MetricType: TypeAlias = Literal["number", "string", "date", "boolean", "object", "array", "null"]

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?", re.ASCII)


class MetricSummary(Struct, omit_defaults=True):
    """One metric over the reports that contain it; the aggregates are of numbers only.

    last  its value in the newest report of the group; unset when that report lacks it, or says null
    """

    type: MetricType
    count: int | UnsetType = UNSET
    sum: Double | UnsetType = UNSET
    min: Double | UnsetType = UNSET
    max: Double | UnsetType = UNSET
    mean: Double | UnsetType = UNSET
    last: Any = UNSET


GroupSummary: TypeAlias = dict[str, MetricSummary]
TrialSummary: TypeAlias = dict[str, GroupSummary]
"""By ``groups.summary_key``. A group that was reported is present, even if no report had a metric."""

_decoder: Final = msgspec.json.Decoder(TrialSummary)


def decode_summary(text: str) -> TrialSummary:
    return _decoder.decode(text)


def type_of(value: Any) -> MetricType:
    """The type of one reported value; the names of non-finite numbers are numbers."""
    if isinstance(value, str):
        if value in SPELLED_FLOATS:
            return "number"
        return "date" if _DATE.fullmatch(value) else "string"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list | tuple) else "object"


def fold(group: GroupSummary, metrics: Mapping[str, Any], *, newest: bool) -> None:
    """Add one report to the summary of its group, in place.

    newest  no report of the group has a later step, so its values are the last ones, and what it lacks has none
    """
    if newest:
        for name, summary in group.items():
            if name not in metrics:
                summary.last = UNSET
    fold_more(group, metrics, newest=newest)


def fold_more(group: GroupSummary, metrics: Mapping[str, Any], *, newest: bool) -> None:
    """Add metrics that came later for a report which was folded already; its other metrics stay as they are."""
    for name, value in metrics.items():
        summary = group.get(name)
        if summary is None:
            summary = group[name] = _first(value)
        elif summary.type == "number" and (number := read_number(value)) is not None:
            _add_number(summary, number)
        elif summary.type != type_of(value):
            _make_string(summary)
        if newest:
            summary.last = UNSET if value is None else value


def _first(value: Any) -> MetricSummary:
    number = read_number(value)
    if number is None:
        return MetricSummary(type_of(value))
    wire = double(number)
    return MetricSummary("number", count=1, sum=wire, min=wire, max=wire, mean=wire)


def _add_number(summary: MetricSummary, number: float) -> None:
    before = summary.sum
    count = (0 if summary.count is UNSET else summary.count) + 1
    summary.count = count
    if isinstance(before, float) and math.isfinite(total := before + number):
        # The sum is finite, and so are all numbers in it, and their extremes: the usual case, and done in no time.
        summary.sum = total
        summary.mean = total / count
        summary.min = min(summary.min, number)  # type: ignore[type-var]
        summary.max = max(summary.max, number)  # type: ignore[type-var]
        return
    total = _float(before) + number
    summary.sum = double(total)
    summary.mean = double(total / count)
    summary.min = double(_least(_float(summary.min), number))
    summary.max = double(-_least(-_float(summary.max), -number))


def _make_string(summary: MetricSummary) -> None:
    summary.type = "string"
    summary.count = summary.sum = summary.min = summary.max = summary.mean = UNSET


def _least(one: float, other: float) -> float:
    # min() takes whichever comes first when one of them is NaN; here NaN always wins.
    if math.isnan(one) or math.isnan(other):
        return math.nan
    return min(one, other)


def _float(value: Double | UnsetType) -> float:
    return 0.0 if value is UNSET else float(value)
