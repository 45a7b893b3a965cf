"""Clients have so long for each part of a request, and all the time in the world while we owe them an answer."""

from __future__ import annotations

import math

import pytest

from libs.serving.limits import HttpLimits
from libs.serving.read_timeouts import ReadPhase, ReadTimeouts

LIMITS = HttpLimits(head_s=20, body_s=60, body_bytes_per_s=1000, linger_s=10)


@pytest.fixture
def timeouts() -> ReadTimeouts:
    return ReadTimeouts(LIMITS, idle_s=75, now=100)


def test_a_new_connection_has_as_long_as_a_head(timeouts: ReadTimeouts) -> None:
    assert (timeouts.phase, timeouts.deadline) == (ReadPhase.KEEP_ALIVE, 120)


def test_each_part_has_its_time(timeouts: ReadTimeouts) -> None:
    timeouts.begin_head(110)
    assert timeouts.deadline == 130
    timeouts.begin_body(115)
    assert timeouts.deadline == 175
    timeouts.begin_responding()
    assert timeouts.deadline is None
    timeouts.begin_keep_alive(200)
    assert timeouts.deadline == 275
    timeouts.begin_lingering(300)
    assert timeouts.deadline == 310


def test_a_large_body_earns_time_and_the_next_one_begins_without(timeouts: ReadTimeouts) -> None:
    timeouts.begin_body(100)
    timeouts.count_body(30_000)
    timeouts.count_body(30_000)
    assert timeouts.deadline == 220
    timeouts.begin_body(200)
    assert timeouts.deadline == 260


def test_a_body_may_take_any_time_once_it_is_said_and_the_next_one_may_not(timeouts: ReadTimeouts) -> None:
    timeouts.begin_body(100)
    timeouts.lift_from_body()
    timeouts.restart(1_000_000)
    assert timeouts.deadline == math.inf
    timeouts.begin_head(2_000_000)
    timeouts.lift_from_body()
    assert timeouts.deadline == 2_000_020
    timeouts.begin_body(2_000_000)
    assert timeouts.deadline == 2_000_060


def test_who_could_not_send_has_its_time_again_but_nobody_lingers(timeouts: ReadTimeouts) -> None:
    timeouts.begin_body(100)
    timeouts.restart(150)
    assert timeouts.deadline == 210
    timeouts.begin_lingering(150)
    timeouts.restart(155)
    assert timeouts.deadline == 160
