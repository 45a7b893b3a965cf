"""Which slots of which nodes an allocation holds whose pods differ."""

from __future__ import annotations

from typing import Any

import pytest

from services.scheduler.allocations.pod_sizes import held_pods, uneven_sizes

PLACES = [{"node": "a", "slots": 4}, {"node": "b", "slots": 4}, {"node": "c", "slots": 3}]


def row(pods: list[dict[str, Any]], places: list[dict[str, Any]] = PLACES, slots: int = 11) -> dict[str, Any]:
    return {"slots": slots, "num_pods": 3, "pods": pods, "places": places}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], [("a", 4), ("b", 4), ("c", 3)]),
        ([{"node": "c", "slots": 3}], [("a", 4), ("b", 4), ("c", 3)]),
        ([{"node": "b", "slots": 4}, {"node": "c", "slots": 3}], [("a", 4), ("b", 4), ("c", 3)]),
        ([{"node": "x", "slots": 3}, {"node": "", "slots": 4}], [("a", 4), ("b", 4), ("x", 3)]),
        ([{"node": "c", "slots": 3, "state": "TERMINATED"}], [("a", 4), ("b", 4)]),
        ([{"node": "here"}, {"node": "here"}, {"node": "here"}], [("here", 3), ("here", 4), ("here", 4)]),
    ],
    ids=["none seen", "the smallest seen", "two seen", "elsewhere than planned", "one ended", "without sizes"],
)
def test_pods_that_differ(pods: list[dict[str, Any]], expected: list[tuple[str, int]]) -> None:
    assert sorted(held_pods(row(pods))) == expected


def test_pods_that_are_alike() -> None:
    places = [{"node": node, "slots": 2} for node in "abc"]
    assert uneven_sizes(places) == ()
    assert held_pods(row([{"node": "x"}], places, slots=6)) == [("x", 2), ("b", 2), ("c", 2)]
    assert sum(slots for _, slots in held_pods(row([], [], slots=11))) == 11, "where nobody says where they are"
