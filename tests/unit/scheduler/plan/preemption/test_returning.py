from __future__ import annotations

from datetime import timedelta

import pytest

from services.scheduler.plan.preemption.returning import LONGEST_REST, rest_after

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("times", "min_runtime", "rest"),
    [
        (0, MINUTE, timedelta()),
        (1, MINUTE, MINUTE),
        (2, MINUTE, 2 * MINUTE),
        (4, MINUTE, 8 * MINUTE),
        (7, MINUTE, LONGEST_REST),
        (10**9, MINUTE, LONGEST_REST),
        (30, timedelta(), timedelta()),
        (30, timedelta.max, LONGEST_REST),
    ],
)
def test_each_time_is_twice_as_long_up_to_an_hour(times: int, min_runtime: timedelta, rest: timedelta) -> None:
    assert rest_after(times, min_runtime) == rest
