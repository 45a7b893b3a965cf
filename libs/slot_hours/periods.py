"""Calendar periods in UTC. Weeks begin on Monday. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias, get_args

Period: TypeAlias = Literal["day", "week", "month"]
PERIODS: Final[tuple[Period, ...]] = get_args(Period)
_MORE_THAN_A_MONTH: Final = timedelta(days=32)


def begin_of(period: Period, now: datetime) -> datetime:
    """When the period began that ``now`` is in."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day


def next_begin(period: Period, now: datetime) -> datetime:
    """When the next one begins."""
    begin = begin_of(period, now)
    if period == "month":
        return begin_of("month", begin + _MORE_THAN_A_MONTH)
    return begin + timedelta(days=7 if period == "week" else 1)
