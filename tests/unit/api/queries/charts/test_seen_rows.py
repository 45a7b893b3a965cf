"""What a stream has read of a trial: each row once, whenever it was committed, and in bounded memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.api.queries.charts.seen_rows import LATE, SeenRows

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_a_row_that_was_committed_late_is_new() -> None:
    seen = SeenRows()
    seen.add(101, NOON)
    assert (seen.recent, seen.floor_id) == ([101], 0)
    seen.add(100, NOON)
    assert (seen.recent, seen.floor_id) == ([101, 100], 0)


def test_of_what_is_long_ago_only_one_id_is_kept() -> None:
    seen = SeenRows()
    for row in range(1, 50_001):
        seen.add(row, NOON + row * timedelta(seconds=1))
    assert seen.newest == NOON + timedelta(seconds=50_000)
    assert seen.recent == list(range(50_001 - int(LATE.total_seconds()), 50_001))
    assert seen.floor_id == 50_000 - int(LATE.total_seconds())


def test_older_reports_may_follow() -> None:
    seen = SeenRows()
    seen.add(2, NOON)
    seen.add(7, NOON - 2 * LATE)
    assert (seen.recent, seen.floor_id, seen.newest) == ([], 7, NOON)
