"""How long a pool is let be after a plan: long after long ones, but never so long that a stall outlives itself."""

from __future__ import annotations

import pytest

from services.scheduler.queue.pool_queue import pause_s
from services.scheduler.settings import QueueSettings

SETTINGS = QueueSettings(plan_interval_s=0.1, resync_s=10.0)


@pytest.mark.parametrize(
    ("took_s", "used_s", "was_empty", "expected_s"),
    [
        pytest.param(0.0, 0.0, False, 0.1, id="a quick plan keeps the interval"),
        pytest.param(0.0, 0.0, True, 0.0, id="a look at an empty queue costs nothing"),
        pytest.param(0.3, 0.3, False, 0.7, id="planning takes three tenths of the processor"),
        pytest.param(3.0, 3.0, True, 7.0, id="so it does where nobody waits"),
        pytest.param(0.3, 0.03, False, 0.3, id="a plan that waits for its database takes half of the time"),
        pytest.param(600.0, 1.0, False, 10.0, id="a database that stood still delays nobody for longer still"),
    ],
)
def test_the_pause_after_a_plan(took_s: float, used_s: float, was_empty: bool, expected_s: float) -> None:
    found = pause_s(took_s, used_s=used_s, was_empty=was_empty, goes_on=False, settings=SETTINGS)
    assert found == pytest.approx(expected_s)


def test_a_plan_that_leaves_starts_to_the_next_one_is_followed_at_once() -> None:
    assert pause_s(2.0, used_s=2.0, was_empty=False, goes_on=True, settings=SETTINGS) == 0.0
