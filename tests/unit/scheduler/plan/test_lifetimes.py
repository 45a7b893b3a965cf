"""For how much longer nodes are busy, as plans expect it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.scheduler.plan.room.lifetimes import EMPTY, Lifetimes, prolonged
from services.scheduler.plan.snapshot import EPOCH, HeldAllocation, NodeSlots

NOW = EPOCH + timedelta(days=1)


def _held(ran_s: int, *, expected_s: int | None = None, ends_s: int | None = None, slots: int = 1) -> HeldAllocation:
    return HeldAllocation(
        allocation="a",
        job="j",
        pods=(("n", slots),),
        started_at=NOW - timedelta(seconds=ran_s),
        expected=None if expected_s is None else timedelta(seconds=expected_s),
        ends_at=None if ends_s is None else NOW + timedelta(seconds=ends_s),
    )


@pytest.mark.parametrize(
    ("held", "left_s"),
    [
        pytest.param(_held(10, expected_s=110), 100, id="as long as is expected"),
        pytest.param(_held(130, expected_s=100), 70, id="twice as long where that is over"),
        pytest.param(_held(450, expected_s=100), 350, id="as often as that is needed"),
        pytest.param(_held(10, expected_s=5000, ends_s=60), 60, id="no longer than is declared"),
        pytest.param(_held(10, ends_s=60), 60, id="what is declared, where nothing is expected"),
        pytest.param(_held(600), 3000, id="an hour, where nothing is known"),
        pytest.param(_held(10, ends_s=-5), 1, id="a moment, where it is over"),
    ],
)
def test_a_node_is_busy_for_what_is_left_of_a_run(held: HeldAllocation, left_s: int) -> None:
    assert Lifetimes([held], now=NOW).of("n") == left_s.bit_length()


def test_the_longest_counts_and_what_has_no_slots_does_not() -> None:
    held = [_held(0, expected_s=50), _held(0, expected_s=5000), _held(0, expected_s=500), _held(0, slots=0)]
    assert Lifetimes(held, now=NOW).of("n") == (5000).bit_length()
    assert Lifetimes([_held(0, slots=0)], now=NOW).of("n") == EMPTY


def test_a_node_of_which_other_pools_hold_slots_is_not_empty() -> None:
    nodes = [NodeSlots(name="n", slots=8, lent=2, max_aux=0), NodeSlots(name="m", slots=8, max_aux=0)]
    lifetimes = Lifetimes((), nodes, now=NOW)
    assert (lifetimes.of("n"), lifetimes.of("m")) == ((3600).bit_length(), EMPTY)


def test_what_starts_makes_a_node_busy_for_longer_only() -> None:
    lifetimes = Lifetimes([_held(0, expected_s=500)], now=NOW)
    lifetimes.start("n", 3)
    assert lifetimes.of("n") == (500).bit_length()
    lifetimes.start("n", 20)
    assert lifetimes.of("n") == 20


def test_a_pod_prolongs_what_ends_before_it() -> None:
    assert [prolonged(busy, 10) for busy in (EMPTY, 1, 9, 10, 20)] == [0, 9, 1, 0, 0]
