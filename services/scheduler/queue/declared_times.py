"""What time limits say to a plan: how long a request runs at most, and when what is held is over. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

_STEP_S: Final = 60
"""What is left of a limit counts in whole minutes: requests that differ by seconds are of one class in a plan."""


def runs_for_of(row: Mapping[Any, Any]) -> timedelta | None:
    """How long an allocation that waits will run at most; the whole limit, or what is left of it, rounded up."""
    if row["time_limit_s"] is None:
        return None
    if not row["ran_before_s"]:
        return timedelta(seconds=row["time_limit_s"])
    left = max(row["time_limit_s"] - row["ran_before_s"], 0.0)
    return timedelta(seconds=min(-(-left // _STEP_S) * _STEP_S, row["time_limit_s"]))


def ends_at_of(row: Mapping[Any, Any]) -> datetime | None:
    """When an allocation that has its slots reaches its limit; one that has yet to start, as if it had at once."""
    if row["time_limit_s"] is None:
        return None
    since: datetime = row["start_time"] or row["assigned_at"]
    return since + timedelta(seconds=max(row["time_limit_s"] - row["ran_before_s"], 0.0))
