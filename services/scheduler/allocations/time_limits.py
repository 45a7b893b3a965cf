"""How much of its time limit an allocation has left, and what is said at its end. Pure.

The time counts from the start of each allocation to its end, over all allocations of a task: what waits or is paused
uses none. Source: docs/scheduling.md (time limits).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from libs.shapes.time_limits import limit_in_words
from services.scheduler.transactions.rows import AllocationRow

_REACHED: Final = "reached its time limit of"


def ran_s(row: AllocationRow) -> float:
    """Seconds that its task has run, by the end of this allocation; those before it when it has not ended."""
    if row.start_time is None or row.end_time is None:
        return row.ran_before_s
    return row.ran_before_s + max((row.end_time - row.start_time).total_seconds(), 0.0)


def ends_at(row: AllocationRow) -> datetime | None:
    """When its time is up; None while it has not started, or is without a limit."""
    if row.time_limit_s is None or row.start_time is None:
        return None
    return row.start_time + timedelta(seconds=max(row.time_limit_s - row.ran_before_s, 0.0))


def is_up(row: AllocationRow, now: datetime) -> bool:
    """Whether its time is up at ``now``, or was when it ended."""
    end = ends_at(row)
    return end is not None and end <= (row.end_time or now)


def has_used_up(row: AllocationRow) -> bool:
    """Whether its task has no time left for another allocation; asked of one that is over."""
    return row.time_limit_s is not None and ran_s(row) >= row.time_limit_s


def reached(row: AllocationRow) -> str:
    """What its owner is told: ``reached its time limit of 12h``."""
    assert row.time_limit_s is not None, "asked of allocations that have one"
    return f"{_REACHED} {limit_in_words(row.time_limit_s)}"
