"""Counts requests for Prometheus: durations by route template and status, failures that should not exist."""

from __future__ import annotations

from functools import cache
from typing import Final

from prometheus_client import Histogram

from libs.telemetry import counter, histogram, level

DURATIONS: Final = histogram(
    "resolute_api_request_duration_seconds",
    "Time from the first byte of a request to the last of its reply",
    "method",
    "route",
    "status",
    # Long polls last a minute, so the buckets reach beyond it.
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 90.0),
)
UNEXPECTED: Final = counter(
    "resolute_api_unexpected_errors_total",
    "Requests that ended in an exception nobody foresaw (500)",
    "method",
    "route",
)
IN_PROGRESS: Final = level("resolute_api_requests_in_progress", "Requests being served")


def request_started() -> None:
    IN_PROGRESS.value += 1


def request_finished(method: str, route: str, status: int, duration_s: float) -> None:
    """``status`` 499 means that the client did not wait for the answer."""
    IN_PROGRESS.value -= 1
    _durations_of(method, route, status).observe(duration_s)


def request_failed_unexpectedly(method: str, route: str) -> None:
    UNEXPECTED.labels(method, route).inc()


@cache
def _durations_of(method: str, route: str, status: int) -> Histogram:
    """Looked up once: this is called for every report of every training process."""
    return DURATIONS.labels(method, route, str(status))
