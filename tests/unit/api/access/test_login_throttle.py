"""Guessing is slow; the owner of a password hardly notices, and others behind the same address not at all."""

from __future__ import annotations

from services.api.access.login_throttle import (
    FORGOTTEN_AFTER_S,
    FREE_BY_ADDRESS,
    FREE_BY_NAME,
    FREE_BY_NAME_AND_ADDRESS,
    LONGEST_WAIT_S,
    MOST_REMEMBERED,
    LoginThrottle,
)


def guess(pace: LoginThrottle, name: str, address: str, *, times: int, now: float = 0.0) -> float:
    """The moment after that many wrong attempts, each as early as it may be."""
    for _ in range(times):
        while wait := pace.wait_s(name, address, now):
            now += wait
        now += pace.fail(name, address, now)
    return now


def test_a_few_mistakes_cost_nothing() -> None:
    assert guess(LoginThrottle(), "hans", "10.0.0.1", times=FREE_BY_NAME_AND_ADDRESS) == 0.0


def test_guesses_at_one_name_are_slowed_from_wherever_they_come() -> None:
    pace, now = LoginThrottle(), 0.0
    for number in range(100):
        now = guess(pace, "hans", f"10.0.0.{number}", times=1, now=now)
    assert now > (80 - FREE_BY_NAME) * LONGEST_WAIT_S


def test_guesses_at_many_names_from_one_place_are_slowed() -> None:
    pace, now = LoginThrottle(), 0.0
    for number in range(100):
        now = guess(pace, f"user{number}", "10.0.0.1", times=1, now=now)
    assert now > 60 * LONGEST_WAIT_S
    assert guess(pace, "user", "10.0.0.2", times=1, now=now) == now


def test_others_behind_the_same_address_do_not_wait() -> None:
    pace = LoginThrottle()
    now = guess(pace, "hans", "10.0.0.1", times=100)
    assert pace.wait_s("hans", "10.0.0.1", now - 1) > 0
    assert [pace.wait_s(f"user{number}", "10.0.0.1", now - 1) for number in range(50)] == [0.0] * 50


def test_one_address_keeps_nobody_out_elsewhere() -> None:
    pace = LoginThrottle()
    now = guess(pace, "hans", "10.0.0.1", times=100)
    assert pace.wait_s("hans", "10.0.0.2", now - 1) == 0.0


def test_one_customer_of_a_network_has_one_address() -> None:
    pace = LoginThrottle()
    waits = [pace.fail(f"user{number}", f"2001:db8::{number:x}", 0.0) for number in range(FREE_BY_ADDRESS + 1)]
    assert waits[:-1] == [0.0] * FREE_BY_ADDRESS
    assert waits[-1] > 0
    assert pace.fail("other", "2001:db8:0:1::1", 0.0) == 0.0


def test_who_knew_the_password_from_here_is_not_kept_out_by_others() -> None:
    pace = LoginThrottle()
    pace.succeed("hans", "10.0.0.1")
    for number in range(FREE_BY_NAME + 5):
        pace.fail("hans", f"10.9.9.{number}", 0.0)
    assert pace.wait_s("hans", "10.0.0.2", 0.0) == 0.0  # books the next turn
    assert pace.wait_s("hans", "10.0.0.2", 0.0) > 0
    assert pace.wait_s("hans", "10.0.0.1", 0.0) == 0.0


def test_failures_are_forgotten_after_the_right_password_and_after_a_while() -> None:
    pace = LoginThrottle()
    now = guess(pace, "hans", "10.0.0.1", times=10)
    pace.succeed("hans", "10.0.0.1")
    assert pace.wait_s("hans", "10.0.0.2", now) == 0.0
    later = guess(pace, "grete", "10.0.0.3", times=10, now=now) + FORGOTTEN_AFTER_S
    assert guess(pace, "grete", "10.0.0.3", times=FREE_BY_NAME_AND_ADDRESS, now=later) == later


def test_no_number_of_names_fills_the_memory() -> None:
    pace = LoginThrottle()
    for number in range(MOST_REMEMBERED + 100):
        pace.fail(f"user{number}", f"address{number}", 0.0)
    assert len(pace._by_pair) == len(pace._by_name) == len(pace._by_address) == MOST_REMEMBERED
