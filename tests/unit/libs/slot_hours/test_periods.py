"""Calendar periods in UTC, across ends of months and years and in the zones of others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from libs.slot_hours.periods import PERIODS, Period, begin_of, next_begin

CASES: list[tuple[Period, str, str, str]] = [
    ("day", "2026-11-26T00:00", "2026-11-26T00:00", "2026-11-27T00:00"),
    ("day", "2026-12-31T23:59", "2026-12-31T00:00", "2027-01-01T00:00"),
    ("week", "2026-11-26T13:00", "2026-11-23T00:00", "2026-11-30T00:00"),
    ("week", "2026-11-30T00:00", "2026-11-30T00:00", "2026-12-07T00:00"),
    ("week", "2027-01-01T01:00", "2026-12-28T00:00", "2027-01-04T00:00"),
    ("month", "2026-11-30T23:59", "2026-11-01T00:00", "2026-12-01T00:00"),
    ("month", "2026-12-01T00:00", "2026-12-01T00:00", "2027-01-01T00:00"),
    ("month", "2028-02-29T12:00", "2028-02-01T00:00", "2028-03-01T00:00"),
]


@pytest.mark.parametrize(("period", "now", "begin", "following"), CASES)
def test_periods(period: Period, now: str, begin: str, following: str) -> None:
    at, first, second = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (now, begin, following))
    assert (begin_of(period, at), next_begin(period, at)) == (first, second)


def test_a_period_begins_at_midnight_in_utc_wherever_the_clock_is() -> None:
    here = timezone(timedelta(hours=9))
    at = datetime(2026, 12, 1, 3, tzinfo=here)  # still November in UTC
    assert begin_of("month", at) == datetime(2026, 11, 1, tzinfo=UTC)
    assert all(begin_of(period, at) <= at < next_begin(period, at) for period in PERIODS)
