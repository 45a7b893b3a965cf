"""Which metrics a chart asks for: a group by its name or by one of the old types, and where its reports keep them."""

from __future__ import annotations

from libs.errors import InvalidRequest
from services.api.metrics.groups import AVG_METRICS, TRAINING, VALIDATION, VALIDATION_METRICS
from services.api.wire.trials.metrics import MetricType

MOST_POINTS = 500_000
"""In one answer, whatever was asked for: they are in memory together."""
MOST_OF_A_SERIES = 10_000


def group_of(group: str, metric_type: MetricType) -> str | None:
    """The group that is asked for, None when nothing says which. Raises InvalidRequest for profiling."""
    if group:
        return group
    if metric_type is MetricType.PROFILING:
        raise InvalidRequest("metricType: system metrics have no batches, read trials/{trialId}/profiler/metrics")
    return {MetricType.TRAINING: TRAINING, MetricType.VALIDATION: VALIDATION}.get(metric_type)


def one_group(group: str, metric_type: MetricType, metric_name: str) -> str:
    """The same where it is required, with the name of the metric. Raises InvalidRequest."""
    if not metric_name:
        raise InvalidRequest("metricName: must specify a metric name")
    found = group_of(group, metric_type)
    if found is None:
        raise InvalidRequest("group: must specify a metric group, or metricType")
    return found


def key_of(group: str) -> str:
    """Under which key a stored report of the group has its metrics."""
    return VALIDATION_METRICS if group == VALIDATION else AVG_METRICS


def points_per_series(wanted: int, default: int, *, series: int) -> int:
    """How many points each of so many series may have. Raises InvalidRequest."""
    if wanted < 0:
        raise InvalidRequest("maxDatapoints: must not be negative")
    return max(1, min(wanted or default, MOST_OF_A_SERIES, MOST_POINTS // max(series, 1)))
