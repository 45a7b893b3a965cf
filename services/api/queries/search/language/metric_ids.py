"""Names of metric columns: ``<group>.<metric>.<aggregate>``, where the metric may contain dots. Pure.

Source: docs/reference/platform.md 9.1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

AGGREGATES: Final = ("last", "max", "mean", "min")
"""What the summary of a trial has of numbers; of anything else it has the last value alone."""


class MetricId(NamedTuple):
    group: str
    metric: str
    aggregate: str


def parse_metric_id(column: str) -> MetricId | None:
    """The parts of the name; None when it names no metric."""
    group, dot, rest = column.partition(".")
    metric, last_dot, aggregate = rest.rpartition(".")
    if not (group and dot and metric and last_dot) or aggregate not in AGGREGATES:
        return None
    return MetricId(group, metric, aggregate)
