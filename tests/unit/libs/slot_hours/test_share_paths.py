"""What shares would get of a pool that remembers what they have used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.slot_hours.share_paths import effective_slots, used_by_share

PAST = {"group 1": 4.0, "group 1/user 1": 4.0, "group 1/user 2": 0.0, "group 2": 0.0, "group 2/user 3": 0.0}


def test_use_adds_up_along_the_paths() -> None:
    used = {(1, 5): 2.0, (2, 5): 1.0, (3, 6): 4.0}
    assert used_by_share(used, ("group", "user"), {1: 7, 2: 7}) == {
        "group 7": 3.0,
        "group 7/user 1": 2.0,
        "group 7/user 2": 1.0,
        "user 3": 4.0,
        "user 3/user 3": 4.0,
    }
    assert used_by_share(used, ("workspace",), {}) == {"workspace 5": 3.0, "workspace 6": 4.0}


@pytest.mark.parametrize(
    ("past", "weights", "slots", "expected"),
    [
        ({"user 1": 0.0, "user 2": 0.0}, {}, 8, {"user 1": 4, "user 2": 4}),
        ({"user 1": 4.0, "user 2": 0.0}, {}, 8, {"user 1": 2, "user 2": 6}),
        ({"user 1": 9.0, "user 2": 0.0}, {}, 8, {"user 1": 0, "user 2": 8}),
        ({"user 1": 3.0, "user 2": 0.0}, {"user 1": 3.0}, 9, {"user 1": 6, "user 2": 3}),
        ({"user 1": 5.0}, {}, 8, {"user 1": 8}),
        (PAST, {}, 8, {"group 1": 2, "group 1/user 1": 0, "group 1/user 2": 2, "group 2": 6, "group 2/user 3": 6}),
        ({}, {}, 8, {}),
    ],
)
def test_effective_slots(
    past: dict[str, float], weights: dict[str, float], slots: float, expected: dict[str, float]
) -> None:
    assert effective_slots(past, weights, slots) == pytest.approx(expected)


@given(
    st.dictionaries(st.sampled_from(("user 1", "user 2", "user 3")), st.floats(0, 99), min_size=1),
    st.dictionaries(st.sampled_from(("user 1", "user 2")), st.sampled_from((0.5, 3.0))),
    st.integers(1, 64),
)
def test_all_slots_are_given(past: dict[str, float], weights: dict[str, float], slots: int) -> None:
    assert sum(effective_slots(past, weights, slots).values()) == pytest.approx(slots)
