"""What a plan is told of time limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.scheduler.queue.declared_times import ends_at_of, runs_for_of

THEN = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("limit_s", "ran_s", "seconds"),
    [
        (None, 0.0, None),
        (45, 0.0, 45),
        (3600, 0.0, 3600),
        (3600, 600.0, 3000),
        (3600, 600.5, 3000),
        (3600, 541.0, 3060),
        (45, 1.0, 45),
        (3600, 3600.0, 0),
        (3600, 4000.0, 0),
    ],
)
def test_what_is_left_for_a_request(limit_s: int | None, ran_s: float, seconds: int | None) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert runs_for_of({"time_limit_s": limit_s, "ran_before_s": ran_s}) == expected


@pytest.mark.parametrize(
    ("columns", "after_s"),
    [
        ({"time_limit_s": None}, None),
        ({"start_time": THEN + timedelta(seconds=30)}, 3630),
        ({"start_time": None}, 3600),
        ({"start_time": THEN, "ran_before_s": 600.0}, 3000),
        ({"start_time": THEN, "ran_before_s": 4000.0}, 0),
    ],
)
def test_when_what_is_held_is_over(columns: dict[str, Any], after_s: float | None) -> None:
    row = {"time_limit_s": 3600, "ran_before_s": 0.0, "assigned_at": THEN, "start_time": None, **columns}
    assert ends_at_of(row) == (None if after_s is None else THEN + timedelta(seconds=after_s))
