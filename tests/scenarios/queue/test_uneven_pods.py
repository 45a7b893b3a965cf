"""Gangs whose pods need not be alike: the second table of docs/reference/scheduling.md 4.5, its 16 (B5, B6), and who
waits, is reserved for, or leaves for them.

Nodes of the table are ``a``, ``b``, ... with so many slots. It gives whole idle nodes, and fits best the emptiest ones;
here pods share nodes, and fill the fullest that will do, unless a row says otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest

from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import FittingPolicy, Placement, PoolPolicy
from tests.scenarios.queue.notation import Case, check, snapshot

_NAMES = "abcdefghijkl"


class Division(NamedTuple):
    request: str
    capacities: tuple[int, ...]
    placed: str
    """Node and slots of each pod; "" where none starts."""
    fitting: FittingPolicy = "worst"
    instead_of: str = ""
    """What the table has, and why this differs."""


TABLE = [
    Division("t1 10", (1, 5, 10), "c:10"),
    Division("t1 4x4", (8, 7, 7, 4, 4, 4, 4), "d:4 e:4 f:4 g:4", "best"),
    Division("t1 4x4", (3, 3, 3, 3, 3), ""),
    Division("t1 16 most 4", (3, 3, 3, 3, 3), ""),
    Division("t1 3x4", (8, 8, 3, 3, 3), "a:4 b:4 b:4", "best", "none: a node of 8 has room for two pods of 4"),
    Division("t1 2x4", (4, 4, 4, 4, 4), "a:4 b:4", "best"),
    Division("t1 4 most 2", (2, 1, 1), "b:1 c:1 a:1 a:1", "best", "a pod of 2: equal pods come before few ones"),
    Division("t1 2x2", (2, 1, 1), ""),
    Division("t1 4 most 2", (2, 1, 1, 1, 1), "b:1 c:1 d:1 e:1", "best"),
    Division("t1 4 most 2", (2, 1, 1, 1), "b:1 c:1 d:1 a:1", "best", "a pod of 2: equal pods come before few ones"),
    Division("t1 8 most 2", (2, 1, 1), ""),
    Division(
        "t1 63 most 32",
        (32, 32, 16, 16, 8, 8, 4, 4, 2, 2, 1, 1),
        "b:32 a:31",
        instead_of="6 nodes, each of them whole: the last pod need not have all of its node, and few pods are better",
    ),
    Division("t1 14 most 10", (10, 8, 6), "a:7 b:7", instead_of="none: it does not see that 8 and 6 are 14"),
    Division("t1 13 most 10", (10, 8, 6), "a:10 c:3", "best"),
    Division("t1 12 most 8", (8, 6, 4), "a:6 b:6", instead_of="8 and 4: equal pods come first, nodes are shared"),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.request} on {row.capacities}")
def test_second_table_of_fitting(row: Division) -> None:
    cluster = dict(zip(_NAMES, row.capacities, strict=False))
    made = plan(snapshot(Case("", cluster, row.request, policy=PoolPolicy(fitting=row.fitting))))
    placed = [f"{place.node}:{place.slots}" for start in made.starts for place in start.placements]
    assert sorted(placed) == sorted(row.placed.split())
    sizes = [place.slots for start in made.starts for place in start.placements]
    assert sizes == sorted(sizes, reverse=True)


TWO = {"a": 4, "b": 4}
SIXES = {"a": 6, "b": 6}
CASES = [
    Case("six slots of two nodes with four are two pods of three", TWO, "t1 6 most 4", "t1", places={"t1": "b:3 a:3"}),
    Case(
        "and one pod on a node of eight, where a pod may have so many",
        {"a": 4, "b": 4, "big": 8},
        "t1 6",
        "t1",
        places={"t1": "big:6"},
    ),
    Case(
        "eight slots on nodes of four and eight are one pod",
        {"a": 4, "big": 8, "c": 4},
        "t1 8",
        "t1",
        places={"t1": "big:8"},
    ),
    Case("seven are four and three", TWO, "t1 7 most 4", "t1", places={"t1": "b:4 a:3"}),
    Case(
        "the last pod goes where it fits best",
        {"a": 8, "b": 6, "c": 3, "d": 4},
        "t1 11 most 8",
        "t1",
        places={"t1": "a:8 c:3"},
    ),
    Case(
        "no more pods than necessary",
        {"a": 2, "b": 2, "c": 8, "d": 1},
        "t1 9 most 8",
        "t1",
        places={"t1": "c:8 d:1"},
    ),
    Case("a large node takes several", {"a": 8}, "t1 7 most 4", "t1", places={"t1": "a:4 a:3"}),
    Case(
        "what others hold is not theirs",
        TWO,
        "x 2@a; t1 7 most 4",
        waits={"t1": WaitReason.NO_ROOM},
        reserved={"t1": "a b"},
    ),
    Case(
        "more than the pool has never starts",
        TWO,
        "t1 9 most 4",
        waits={"t1": WaitReason.TOO_LARGE},
        details={"t1": "needs 9 slots in pods of at most 4 on nodes, which have room for 8"},
    ),
    Case(
        "the rest of a node beyond whole pods is left to others",
        {"a": 5, "b": 5},
        "t1 9 most 4; t2 1",
        "t2",
        waits={"t1": WaitReason.TOO_LARGE},
    ),
    Case(
        "equal pods use what pods of the bound would leave",
        SIXES,
        "t1 12 most 4",
        "t1",
        places={"t1": "b:3 b:3 a:3 a:3"},
    ),
    Case(
        "they are waited for while somebody is in the way, and have room kept for them",
        SIXES,
        "x 1@a; t1 12 most 4; t2 1",
        waits={"t1": WaitReason.NO_ROOM, "t2": WaitReason.BEHIND_RESERVATION},
        reserved={"t1": "a b"},
    ),
    Case(
        "and somebody leaves for them",
        SIXES,
        "x 1[10]@a; t1 12[5] most 4",
        waits={"t1": WaitReason.PREEMPTING},
        preempts="x>t1",
        policy=PoolPolicy(preemption=True),
    ),
    Case(
        "free slots that its pods cannot use do not make its room complete, so that it is not kept for ever",
        {"a": 8, "b": 8},
        "g 2@a; h 2@b; t1 11 most 4 since 3600; s1 2; s2 2",
        "s1 s2",
        waits={"t1": WaitReason.NO_ROOM},
    ),
    Case(
        "its room is complete when a whole pod has room on one of the nodes",
        {"a": 8, "b": 8},
        "g 2@a for 600; h 2@b for 900; t1 11 most 4; s1 2 for 500; s2 3 for 5000",
        "s1",
        waits={"t1": WaitReason.NO_ROOM, "s2": WaitReason.BEHIND_RESERVATION},
        reserved={"t1": "a b"},
    ),
    Case("excluded nodes are none of theirs", {**TWO, "c": 4}, "t1 7 most 4 not b", "t1", places={"t1": "a:4 c:3"}),
    Case(
        "cores of a node bound its pods",
        {"a": 8, "b": 8},
        "t1 10 most 4 cpu 40",
        waits={"t1": WaitReason.TOO_LARGE},
        kinds={"a": "gpu=a", "b": "gpu=a"},
    ),
    Case(
        "and do no harm where there are enough",
        {"a": 8, "b": 8},
        "t1 11 most 4 cpu 20",
        "t1",
        places={"t1": "b:4 b:4 a:3"},
        kinds={"a": "gpu=a", "b": "gpu=a"},
    ),
    Case(
        "somebody leaves for them, and no more than have to",
        TWO,
        "x 4[10]@a; y 4[10]@b; t1 7[5] most 4",
        waits={"t1": WaitReason.PREEMPTING},
        preempts="x>t1 y>t1",
        policy=PoolPolicy(preemption=True),
    ),
    Case(
        "only for what is missing",
        {**TWO, "c": 3},
        "x 4[10]@a; y 4[10]@b ran 7200; t1 7[5] most 4",
        waits={"t1": WaitReason.PREEMPTING},
        preempts="x>t1",
        policy=PoolPolicy(preemption=True),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_uneven_pods(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("request_", "nominated", "starts"),
    [
        ("x 8 most 4", ("a:4", "b:2", "c:2"), "a:4 b:2 c:2"),
        ("x 2x4", ("a:4", "b:2", "c:2"), ""),
        ("x 8 most 3", ("a:4", "b:2", "c:2"), "a:2 a:2 b:2 c:2"),
        ("x 2x4", ("a:4",), ""),
        ("x 8 most 4", ("a:4",), "a:2 a:2 b:2 c:2"),
    ],
)
def test_places_that_are_not_those_of_its_pods_are_given_up(
    request_: str, nominated: tuple[str, ...], starts: str
) -> None:
    """As a pool's setting may change while a request waits for its places."""
    pool = snapshot(Case("", {"a": 4, "b": 2, "c": 2}, request_))
    places = tuple(Placement(place[0], int(place[2:])) for place in nominated)
    [request] = pool.pending
    pool = msgspec.structs.replace(pool, pending=(msgspec.structs.replace(request, nominated=places),))
    made = plan(pool)
    placed = [f"{place.node}:{place.slots}" for start in made.starts for place in start.placements]
    assert sorted(placed) == sorted(starts.split())
    gone = [one.allocation for one in made.nominated if not one.placements]
    assert gone == (["x"] if sorted(placed) != sorted(nominated) else [])
