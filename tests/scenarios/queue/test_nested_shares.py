"""Shares within shares, each with a weight: who gets which part of a pool that is asked for more than it has.

A request is ``by`` the path of its share; weights are those of paths, and 1 otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import PoolPolicy, PoolSnapshot
from tests.scenarios.queue.notation import Case, check, snapshot

FAIR = PoolPolicy(queue="fair_share")


class Row(NamedTuple):
    name: str
    slots: int
    wants: Mapping[str, int]
    """Tasks of one slot, by the path of the share."""
    weights: Mapping[str, float]
    gets: Mapping[str, int]


ROWS = [
    Row(
        "equal groups", 8, {"red/ann": 8, "red/bob": 8, "blue/cid": 8}, {}, {"red/ann": 2, "red/bob": 2, "blue/cid": 4}
    ),
    Row(
        "a group that weighs more, and a user in it",
        12,
        {"red/ann": 12, "red/bob": 12, "blue/cid": 12},
        {"red": 3, "red/ann": 2},
        {"red/ann": 6, "red/bob": 3, "blue/cid": 3},
    ),
    Row(
        "a weight counts within its own share only",
        12,
        {"red/ann": 12, "red/bob": 12, "blue/cid": 12},
        {"red/ann": 100, "red/bob": 100, "blue/cid": 1},
        {"red/ann": 3, "red/bob": 3, "blue/cid": 6},
    ),
    Row(
        "what a share does not use goes to those beside it first",
        12,
        {"red/ann": 1, "red/bob": 12, "blue/cid": 12},
        {"red": 2, "red/ann": 7},
        {"red/ann": 1, "red/bob": 7, "blue/cid": 4},
    ),
    Row(
        "three levels",
        16,
        {"w/red/ann": 16, "w/red/bob": 16, "w/blue/cid": 16, "v/red/dan": 16},
        {"w": 3, "w/red": 2, "w/red/ann": 3},
        {"w/red/ann": 6, "w/red/bob": 2, "w/blue/cid": 4, "v/red/dan": 4},
    ),
    Row("less than one", 9, {"a": 9, "b": 9}, {"a": 0.5}, {"a": 3, "b": 6}),
    Row("who weighs next to nothing is not left out", 4, {"a": 4, "b": 4}, {"a": 1_000_000}, {"a": 3, "b": 1}),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_parts_of_a_pool(row: Row) -> None:
    assert _held(row.slots, row.wants, row.weights) == row.gets


def test_a_share_takes_back_what_its_weight_gives_it() -> None:
    """Bob holds the whole pool. Ann weighs three times as much, and takes three of four nodes."""
    case = Case(
        "",
        {"a": 1, "b": 1, "c": 1, "d": 1},
        "b1:B 1@a by red/bob ran 400; b2:B 1@b by red/bob ran 300; b3:B 1@c by red/bob ran 200; "
        "b4:B 1@d by red/bob ran 100; a1:A 1 by red/ann; a2:A 1 by red/ann; a3:A 1 by red/ann; a4:A 1 by red/ann",
        preempts="b4>a1 b3>a2 b2>a3",
        policy=FAIR,
        weights={"red/ann": 3},
    )
    check(case)


_LEVEL = st.sampled_from(("a", "b", "c"))
_SATURATED = st.dictionaries(st.tuples(_LEVEL, _LEVEL).map("/".join), st.integers(1, 6), min_size=2, max_size=6)


@given(
    leaves=_SATURATED,
    tops=st.fixed_dictionaries(dict.fromkeys("abc", st.integers(1, 6))),
    slots=st.integers(12, 40),
)
def test_shares_of_a_saturated_pool_are_as_their_weights(
    leaves: Mapping[str, int], tops: Mapping[str, int], slots: int
) -> None:
    """At each level, no share is more than one task away from its part of what the share around it has."""
    held = _held(slots, dict.fromkeys(leaves, slots), {**tops, **leaves})
    assert held.total() == slots
    by_top: Counter[str] = Counter()
    for path, count in held.items():
        by_top[path[0]] += count
    _assert_divided({name: tops[name] for name in {path[0] for path in leaves}}, by_top)
    for name, count in by_top.items():
        inner = {path: weight for path, weight in leaves.items() if path[0] == name}
        assert count == sum(held[path] for path in inner)
        _assert_divided(inner, held)


def _assert_divided(weights: Mapping[str, int], held: Mapping[str, int]) -> None:
    """Whoever got the last slot had not more per weight before it than anybody else has now."""
    for one, weight in weights.items():
        for other, other_weight in weights.items():
            assert (held[one] - 1) / weight <= held[other] / other_weight + 1e-9


def _held(slots: int, wants: Mapping[str, int], weights: Mapping[str, float]) -> Counter[str]:
    """Slots of each share after one plan for an empty pool."""
    requests = "; ".join(
        f"t{number}x{count}:j{number} 1 by {path}"
        for number, (path, wanted) in enumerate(wants.items())
        for count in range(wanted)
    )
    asked: PoolSnapshot = snapshot(Case("", {"node": slots}, requests, policy=FAIR, weights=weights))
    share_of = {one.allocation: one.share for one in asked.pending}
    return Counter(share_of[start.allocation] for start in plan(asked).starts)
