"""What users, groups and workspaces may hold at once, as data."""

from __future__ import annotations

from operator import attrgetter

import pytest

from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PoolPolicy, SlotLimit
from tests.scenarios.queue.notation import Case, check

W = WaitReason
A8 = {"a1": 8}
SHARES = PoolPolicy(queue="fair_share")
ANN4 = SlotLimit(holder="user ann", most=4)
LAB6 = SlotLimit(holder="group lab", most=6, where=" of resource pool a")
LOWERED = SlotLimit(holder="user ann", most=4, preempts=True)

CASES = [
    Case(
        "others pass what waits for a limit",
        A8,
        "t1 2@a1 under ann; t2 4 under ann; t3 4 under bob",
        "t3",
        {"t2": W.SLOT_LIMIT},
        limits={"ann": ANN4},
    ),
    Case("a limit is reached to the last slot", A8, "t1 2@a1 under ann; t2 2 under ann", "t2", limits={"ann": ANN4}),
    Case(
        "what starts counts at once",
        A8,
        "t1 3 under ann; t2 3 under ann; t3 1 under ann",
        "t1 t3",
        {"t2": W.SLOT_LIMIT},
        limits={"ann": ANN4},
    ),
    Case(
        "each limit counts",
        A8,
        "t1 3 under ann,lab; t2 3 under bob,lab; t3 1 under bob,lab; t4 1 under ann,lab; t5 2",
        "t1 t2 t5",
        {"t3": W.SLOT_LIMIT, "t4": W.SLOT_LIMIT},
        limits={"ann": ANN4, "lab": LAB6},
    ),
    Case(
        "what is held in other pools counts",
        A8,
        "t1 2 under ann; t2 1 under ann",
        "t2",
        {"t1": W.SLOT_LIMIT},
        limits={"ann": SlotLimit(holder="user ann", most=4, elsewhere=3)},
    ),
    Case(
        "less important requests do not use up what a more important one waits for",
        A8,
        "t1 2@a1 under ann; t2 1[50] under ann; t3 4[40] under ann; t4 1[50]",
        "t4",
        {"t3": W.SLOT_LIMIT, "t2": W.BEHIND_PRIORITY},
        limits={"ann": ANN4},
    ),
    Case(
        "they start all the same where it is larger than the limit",
        A8,
        "t2 1[50] under ann; t3 5[40] under ann",
        "t2",
        {"t3": W.SLOT_LIMIT},
        limits={"ann": ANN4},
    ),
    Case(
        "among equals smaller ones go on",
        A8,
        "t1 2@a1 under ann; t2 4 under ann; t3 1 under ann",
        "t3",
        {"t2": W.SLOT_LIMIT},
        limits={"ann": ANN4},
    ),
    Case(
        "tasks without slots have no limit",
        A8,
        "t1 4@a1 under ann; t2 0 under ann",
        "t2",
        limits={"ann": ANN4},
    ),
    Case(
        "nobody leaves for what a limit keeps from starting",
        A8,
        "t1 8[50]@a1 under bob; t2 4[40]@a2 under ann; t3 4[40] under ann",
        "",
        {"t3": W.SLOT_LIMIT},
        limits={"ann": ANN4},
        policy=PoolPolicy(preemption=True),
    ),
    Case(
        "a lowered limit lets nobody leave by itself",
        A8,
        "t1 4@a1 under ann; t2 4@a1 under ann",
        limits={"ann": ANN4},
    ),
    Case(
        "one that is enforced lets the newest leave",
        A8,
        "t1 4@a1 under ann; t2 2@a1 under ann; t3 2@a1 under ann; t4 1 under ann",
        "",
        {"t4": W.SLOT_LIMIT},
        preempts="t2> t3>",
        limits={"ann": LOWERED},
    ),
    Case(
        "no more than that, where some leave in other pools",
        A8,
        "t1 4@a1 under ann; t2 2@a1 under ann; t3 2@a1 under ann",
        preempts="t3>",
        limits={"ann": SlotLimit(holder="user ann", most=8, elsewhere=4, leaving=2, preempts=True)},
    ),
    Case(
        "shares are divided within the limits",
        A8,
        "t1 1 by ann under ann; t2 2 by ann under ann; t3 4 by ann under ann; t4 1 by bob",
        "t1 t4 t2",
        {"t3": W.SLOT_LIMIT},
        limits={"ann": ANN4},
        policy=SHARES,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_limits(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("requests", "limit", "detail"),
    [
        ("t1 4@a1 under x; t2 1 under x", ANN4, "user ann holds 4 of 4 slots"),
        ("t1 5@a1 under x; t2 2 under x", LAB6, "group lab holds 5 of 6 slots of resource pool a"),
        ("t2 7 under x", LAB6, "group lab may hold 6 slots of resource pool a, and this needs 7"),
    ],
)
def test_a_wait_says_who_holds_how_much(requests: str, limit: SlotLimit, detail: str) -> None:
    [wait] = check(Case("", A8, requests, waits={"t2": W.SLOT_LIMIT}, limits={"x": limit})).waits
    assert wait.detail == detail
    assert wait.sentence == f"a limit of slots at once is reached: {detail}"
