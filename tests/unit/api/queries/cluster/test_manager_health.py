"""When the resource manager counts as up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from libs.events.capacity import PoolCapacity
from services.api.queries.cluster.manager_health import is_reporting

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def said(seconds_ago: float, pool: str = "default") -> PoolCapacity:
    moment = NOW - timedelta(seconds=seconds_ago)
    return PoolCapacity(pool=pool, backend="kubernetes", seen_at=moment.isoformat())


@pytest.mark.parametrize(
    ("reports", "is_up"),
    [
        ([], False),
        ([said(0)], True),
        ([said(99)], True),
        ([said(101)], False),
        ([said(3600, "idle"), said(5, "other")], True),
        ([said(3600, "idle"), said(200, "other")], False),
        ([said(-5)], True),
        ([PoolCapacity(pool="default", backend="process")], False),
        ([PoolCapacity(pool="default", backend="process", seen_at="2030-01-01T12:00:00")], False),
        ([PoolCapacity(pool="default", backend="process", seen_at="2030-01-01T13:00:00+01:00")], True),
    ],
)
def test_the_last_report_of_any_pool_counts(reports: list[PoolCapacity], is_up: bool) -> None:
    assert is_reporting(reports, NOW) is is_up
