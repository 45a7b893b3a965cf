"""What a trial did while it held its slots: spans that end with a report of what was done in them. Pure.

The reference counts between reports. Here the time before the first and after the last counts too, since slots are held
in it: the sums of all spans are those of the allocations, also of trials that never report.

Source: docs/reference/scheduling.md 10.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

TRAINING: Final = "training"


class TimeSpan(Struct, frozen=True):
    kind: str
    start: datetime
    end: datetime


def merged(reports: Iterable[tuple[datetime, str]]) -> list[tuple[datetime, str]]:
    """Reports in the order of time, without those after which the next is of the same kind."""
    left: list[tuple[datetime, str]] = []
    for moment, kind in reports:
        if left and left[-1][1] == kind:
            left.pop()
        left.append((moment, kind))
    return left


def spans(start: datetime, end: datetime, reports: Iterable[tuple[datetime, str]]) -> list[TimeSpan]:
    """``start`` to ``end`` without gaps: up to each report of its kind, and after the last one training.

    reports  in the order of time; those outside count for nothing
    """
    found: list[TimeSpan] = []
    inside = [(moment, kind) for moment, kind in reports if start < moment < end]
    for moment, kind in merged([*inside, (end, TRAINING)]):
        if start < moment:
            found.append(TimeSpan(kind, start, moment))
            start = moment
    return found


def clipped(span: TimeSpan, after: datetime, before: datetime) -> TimeSpan | None:
    """The part of it that is in the window; None when there is none."""
    start, end = max(span.start, after), min(span.end, before)
    return TimeSpan(span.kind, start, end) if start < end else None
