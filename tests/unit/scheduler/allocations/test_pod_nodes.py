"""Where the pods of an allocation are, as far as they were seen: no node is counted for two of them that has one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.allocations.pod_nodes import nodes_of_pods


def pods(text: str) -> list[dict[str, Any]]:
    """Nodes of pods in rank order: ``-`` for one that has none yet, ``!`` behind that of one that has ended."""
    return [
        {"node": "" if each == "-" else each.rstrip("!"), "state": "TERMINATED" if each.endswith("!") else "RUNNING"}
        for each in text.split()
    ]


def places(text: str) -> list[dict[str, Any]]:
    return [{"node": node, "slots": 4} for node in text.split()]


@pytest.mark.parametrize(
    ("seen", "planned", "found"),
    [
        ("", "a a b", "a a b"),
        ("a - -", "a a b", "a a b"),
        ("- a b", "b a a", "a a b"),
        ("- b a a", "a a b c", "c b a a"),
        ("c - -", "a a b", "c a b"),
        ("a! - b", "a a b", "a b"),
        ("b a a", "a a b", "b a a"),
        ("b a", "", "b a "),
    ],
)
def test_a_pod_without_a_node_has_what_is_left_of_the_plan(seen: str, planned: str, found: str) -> None:
    expected = found.split(" ")
    assert (
        nodes_of_pods(num_pods=3 if len(seen.split()) != 4 else 4, pods=pods(seen), places=places(planned)) == expected
    )


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.data())
def test_in_whatever_order_pods_are_bound_the_nodes_are_those_of_the_plan(
    planned: list[str], data: st.DataObject
) -> None:
    bound: list[str] = data.draw(st.permutations(planned))
    hidden = data.draw(st.sets(st.integers(0, len(planned) - 1)))
    seen = [{"node": "" if rank in hidden else node} for rank, node in enumerate(bound)]
    found = nodes_of_pods(num_pods=len(planned), pods=seen, places=places(" ".join(planned)))
    assert Counter(found) == Counter(planned)
