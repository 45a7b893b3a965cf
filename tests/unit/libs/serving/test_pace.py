"""Clients have so long for each part of a request, and all the time in the world while we owe them an answer."""

from __future__ import annotations

import pytest

from libs.serving.limits import HttpLimits
from libs.serving.pace import Owed, Pace

LIMITS = HttpLimits(head_s=20, body_s=60, body_bytes_per_s=1000, linger_s=10)


@pytest.fixture
def pace() -> Pace:
    return Pace(LIMITS, idle_s=75, now=100)


def test_a_new_connection_has_as_long_as_a_head(pace: Pace) -> None:
    assert (pace.owed, pace.due) == (Owed.REQUEST, 120)


def test_each_part_has_its_time(pace: Pace) -> None:
    pace.begin_head(110)
    assert pace.due == 130
    pace.begin_body(115)
    assert pace.due == 175
    pace.wait_for_us()
    assert pace.due is None
    pace.rest(200)
    assert pace.due == 275
    pace.part(300)
    assert pace.due == 310


def test_a_large_body_earns_time_and_the_next_one_begins_without(pace: Pace) -> None:
    pace.begin_body(100)
    pace.receive(30_000)
    pace.receive(30_000)
    assert pace.due == 220
    pace.begin_body(200)
    assert pace.due == 260


def test_who_could_not_send_has_its_time_again_but_nobody_lingers(pace: Pace) -> None:
    pace.begin_body(100)
    pace.excuse(150)
    assert pace.due == 210
    pace.part(150)
    pace.excuse(155)
    assert pace.due == 160
