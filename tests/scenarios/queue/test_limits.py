"""What users, groups and workspaces may hold at once and use in a period, as data."""

from __future__ import annotations

from datetime import UTC, datetime
from operator import attrgetter

import pytest

from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import HourLimit, PoolPolicy, SlotLimit
from tests.scenarios.queue.notation import Case, check

W = WaitReason
A8 = {"a1": 8}
SHARES = PoolPolicy(queue="fair_share")
ANN4 = SlotLimit(holder="user ann", most=4)
LAB6 = SlotLimit(holder="group lab", most=6, where=" of resource pool a")
LOWERED = SlotLimit(holder="user ann", most=4, preempts=True)

NEXT_WEEK = datetime(2026, 11, 30, tzinfo=UTC)
HOUR_S = 3600


def hours(most: float, *, spent: float = 0, rest: float = 0, preempts: bool = False) -> dict[str, HourLimit]:
    """Of the group lab in a week."""
    return {
        "lab": HourLimit(
            holder="group lab",
            period="week",
            most_s=most * HOUR_S,
            spent_s=spent * HOUR_S,
            rest_s=rest * HOUR_S,
            next_at=NEXT_WEEK,
            preempts=preempts,
        )
    }


HOURS = [
    Case("what is left is charged at the start", A8, "t1 4 under lab for 3600", "t1", limits=hours(10, spent=6)),
    Case(
        "a request may use no more than is left",
        A8,
        "t1 4 under lab for 3601; t2 4",
        "t2",
        {"t1": W.HOUR_LIMIT},
        limits=hours(10, spent=6),
    ),
    Case(
        "what starts is charged at once, with all its slots",
        A8,
        "t1 2x2 under lab for 3600; t2 1 under lab for 3600; t3 1",
        "t1 t3",
        {"t2": W.HOUR_LIMIT},
        limits=hours(10, spent=6),
    ),
    Case(
        "what others that run may still use counts",
        A8,
        "t1 1 under lab for 3600",
        "",
        {"t1": W.HOUR_LIMIT},
        limits=hours(10, spent=4, rest=6),
    ),
    Case(
        "without a time limit nothing is charged ahead",
        A8,
        "t1 4 under lab; t2 4 under lab",
        "t1 t2",
        limits=hours(10, spent=9.9),
    ),
    Case(
        "until all is used",
        A8,
        "t1 4@a1 under lab; t2 1 under lab; t3 1",
        "t3",
        {"t2": W.HOUR_LIMIT},
        limits=hours(10, spent=10),
    ),
    Case(
        "then who has no time limit leaves where that is enforced",
        A8,
        "t1 4@a1 under lab; t2 2@a1 under lab for 60; t3 1@a1 under lab np; t4 1@a1",
        preempts="t1>",
        limits=hours(10, spent=10, preempts=True),
    ),
    Case(
        "less important requests do not use up what may come back when others end early",
        A8,
        "t1 4[40] under lab for 3600; t2 1[50] under lab for 3600",
        "",
        {"t1": W.HOUR_LIMIT, "t2": W.BEHIND_PRIORITY},
        limits=hours(10, spent=5, rest=3),
    ),
    Case(
        "they use what is left where a more important one has to wait for the next period",
        A8,
        "t1 4[40] under lab for 3600; t2 1[50] under lab for 3600",
        "t2",
        {"t1": W.HOUR_LIMIT},
        limits=hours(10, spent=8),
    ),
]


CASES = [
    *HOURS,
    Case(
        "nobody leaves for what others are charged ahead",
        A8,
        "a 4@a1 under lab; b 4@a1 under lab for 3600",
        limits=hours(4, rest=4, preempts=True),
    ),
    Case(
        "what could not start anyway keeps nobody from a limit",
        {"a1": 8, "a2": 8},
        "busy 1@a1 under lab; big 16[10] under lab; x 1[50] under lab",
        "x",
        {"big": W.SLOT_LIMIT},
        limits={"lab": SlotLimit(holder="group lab", most=16)},
    ),
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


@pytest.mark.parametrize(
    ("asks", "limits", "detail"),
    [
        (
            "t2 4 under lab for 7200",
            hours(100, spent=90.999, rest=5.5),
            "group lab has used 96 of 100 slot-hours this week; the next period begins 2026-11-30 00:00 UTC",
        ),
        (
            "t2 4 under lab",
            hours(100, spent=130),
            "group lab has used 100 of 100 slot-hours this week; the next period begins 2026-11-30 00:00 UTC",
        ),
        ("t2 4 under lab for 7200", hours(7.5), "group lab may use 7.5 slot-hours a week, and this may use 8"),
        (
            "t2 4 under lab",
            hours(0),
            "group lab has used 0 of 0 slot-hours this week; the next period begins 2026-11-30 00:00 UTC",
        ),
    ],
)
def test_a_wait_says_what_is_used_until_when(asks: str, limits: dict[str, HourLimit], detail: str) -> None:
    [wait] = check(Case("", A8, asks, waits={"t2": W.HOUR_LIMIT}, limits=limits)).waits
    assert wait.detail == detail


def test_what_is_said_changes_in_steps_only() -> None:
    """Each change is written down for each request that waits."""
    said = set()
    for tenth in range(905, 1100):
        case = Case("", A8, "t2 4 under lab for 9000", waits={"t2": W.HOUR_LIMIT}, limits=hours(100, spent=tenth / 10))
        said |= {wait.detail for wait in check(case).waits}
    assert len(said) == 11
