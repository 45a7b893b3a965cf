"""System metrics by series: the documents in which they are stored, and the readings in them. Pure.

A document is what the harness reports: ``{agent: {metric: value}}`` or ``{agent: {device: {metric: value}}}``, where a
device is a GPU or the mount path of a disk. Source: docs/reference/logs.md 11, docs/reference/harness-protocol.md 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from libs.errors import InvalidRequest
from libs.searchers.reports import read_number
from services.api.metrics.groups import Kind
from services.api.metrics.merge import Measured
from services.api.metrics.report import MetricReport, encode
from services.api.wire.base import double

_GROUPS: Final = {
    "gpu_util": "gpu",
    "gpu_free_memory": "gpu",
    "cpu_util_simple": "cpu",
    "memory_free": "memory",
    "free_memory": "memory",
    "disk_iops": "disk",
    "disk_util": "disk",
    "disk_throughput_read": "disk",
    "disk_throughput_write": "disk",
    "net_throughput_sent": "network",
    "net_throughput_recv": "network",
}
OTHERS: Final = "misc"
TIMINGS: Final = "timing"
MOST_READINGS: Final = 10_000


class Series(Struct, frozen=True, order=True):
    """``device`` '' is none."""

    name: str
    agent: str = ""
    device: str = ""


class Reading(Struct, frozen=True):
    series: Series
    value: float


def group_of_series(name: str, *, is_timing: bool = False) -> str:
    """The group under which readings of a series are stored."""
    return TIMINGS if is_timing else _GROUPS.get(name, OTHERS)


def readings_in(document: Any) -> Iterator[Reading]:
    """The numbers of a stored document; what is none of them is left out."""
    for agent, entries in _items(document):
        for key, value in _items(entries):
            if isinstance(value, dict):
                for name, inner in value.items():
                    yield from _reading(Series(name, agent, key), inner)
            else:
                yield from _reading(Series(key, agent), value)


def reports_of_series(
    series: Series, values: Sequence[float], moments: Sequence[datetime], *, trial_id: int, run: int, is_timing: bool
) -> list[MetricReport]:
    """Readings of one series as reports of their own. Raises InvalidRequest."""
    reports = []
    for value, moment in zip(values, moments, strict=True):
        reading: dict[str, Any] = {series.name: double(value)}
        document = {series.agent: {series.device: reading} if series.device else reading}
        reports.append(
            MetricReport(
                trial_id=trial_id,
                run=run,
                group=group_of_series(series.name, is_timing=is_timing),
                kind=Kind.PROFILING,
                step=None,
                end_time=moment,
                measured=Measured(document),
                document=encode(document),
            )
        )
    return reports


def check_lengths(values: int, batches: int, moments: int) -> None:
    """Raises InvalidRequest."""
    if not values == batches == moments:
        raise InvalidRequest(
            "values, batches and timestamps must be equally long, "
            f"got {values} values, {batches} batches and {moments} timestamps"
        )


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _reading(series: Series, value: Any) -> Iterator[Reading]:
    number = read_number(value)
    if number is not None:
        yield Reading(series, number)
