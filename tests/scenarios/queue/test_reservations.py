"""A large job among small ones starts within a bound: docs/reference/scheduling.md 16, B4."""

from __future__ import annotations

from itertools import count
from operator import attrgetter

import msgspec
import pytest

from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.remembered import remembered
from services.scheduler.plan.snapshot import HeldAllocation, PoolPolicy
from tests.scenarios.queue.notation import Case, check, snapshot
from tests.scenarios.queue.virtual_queue import VirtualQueue

W = WaitReason
TWO = {"a1": 4, "a2": 4}
PREEMPTS = PoolPolicy(preemption=True)

CASES = [
    Case(
        "what ends in time uses what is kept",
        TWO,
        "big 2x4[42]; small 1[42] for 60; x 3[42]@a1 for 90; y 2[42]@a2 for 90",
        "small",
        {"big": W.NO_ROOM},
        reserved={"big": "a1 a2"},
    ),
    Case(
        "what may run longer does not",
        TWO,
        "big 2x4[42]; small 1[42] for 91; x 3[42]@a1 for 90; y 2[42]@a2 for 90",
        "",
        {"big": W.NO_ROOM, "small": W.BEHIND_RESERVATION},
    ),
    Case(
        "nor, once it has waited for long, what barely does: ends are promises of others",
        TWO,
        "big 2x4[42] since 14400; small 1[42] for 60; x 3[42]@a1 for 90; y 2[42]@a2 for 90",
        "",
        {"big": W.NO_ROOM, "small": W.BEHIND_RESERVATION},
        reserved={"big": "a1 a2"},
    ),
    Case(
        "who passes comes by how long it has waited for what it runs",
        {"a1": 4, "a2": 4, "a3": 1},
        "big 2x4[42]; x 4[42]@a1; long 1[42] expected 864000; short 1[42] expected 60; y 4[42]@a2",
        "short",
        {"big": W.NO_ROOM, "long": W.NO_ROOM},
        reserved={"big": "a1 a2"},
    ),
    Case(
        "or by age, where nothing is expected",
        {"a1": 4, "a2": 4, "a3": 1},
        "big 2x4[42]; x 4[42]@a1; old 1[42]; young 1[42]; y 4[42]@a2",
        "old",
        {"big": W.NO_ROOM, "young": W.NO_ROOM},
        reserved={"big": "a1 a2"},
    ),
    Case(
        "a time limit is expected of who says no more",
        {"a1": 4, "a2": 4, "a3": 1},
        "big 2x4[42]; x 4[42]@a1; long 1[42] expected 864000; short 1[42] for 60; y 4[42]@a2",
        "short",
        {"long": W.NO_ROOM},
    ),
    Case(
        "the first of a level is the oldest all the same",
        {"a3": 1},
        "long 1[42] expected 864000; short 1[42] expected 60",
        "long",
        {"short": W.NO_ROOM},
    ),
    Case(
        "nobody of a less important level comes before",
        {"a1": 4, "a2": 4, "a3": 1},
        "big 2x4[42]; x 4[42]@a1; long 1[42] expected 864000; short 1[50] expected 60; y 4[42]@a2",
        "long",
        {"short": W.BEHIND_PRIORITY},
    ),
    Case(
        "where nobody knows the end, nothing is early enough",
        TWO,
        "big 2x4[42]; small 1[42] for 1; x 3[42]@a1 for 90; y 2[42]@a2",
        "",
        {"small": W.BEHIND_RESERVATION},
    ),
    Case(
        "the nodes that come free first are chosen",
        {"a1": 4, "a2": 4, "a3": 4},
        "big 2x4[42]; x 4[42]@a1 for 500; y 1[42]@a2; z 4[42]@a3 for 90; small 3[42]",
        "small",
        {"big": W.NO_ROOM},
        reserved={"big": "a1 a3"},
    ),
    Case(
        "any of those that are free by then will do where that is late, so that others use what is free meanwhile",
        {"a1": 4, "a2": 4, "a3": 4},
        "big 2x4[42]; x 4[42]@a3 for 1801; y 4[42]@a2 for 1801; z 1[42]@a1 for 1801; small 3[42]",
        "small",
        {"big": W.NO_ROOM},
        reserved={"big": "a2 a3"},
        places={"small": "a1"},
    ),
    Case(
        "those that lack least where it is soon, as ends may be later",
        {"a1": 4, "a2": 4, "a3": 4},
        "big 2x4[42]; x 4[42]@a3 for 1800; y 4[42]@a2 for 1800; z 1[42]@a1 for 1800; small 3[42]",
        "",
        {"big": W.NO_ROOM, "small": W.BEHIND_RESERVATION},
        reserved={"big": "a1 a3"},
    ),
    Case(
        "those that lack least, too, once it has waited for long",
        {"a1": 4, "a2": 4, "a3": 4},
        "big 2x4[42] since 14400; x 4[42]@a3 for 1801; y 4[42]@a2 for 1801; z 1[42]@a1 for 1801; small 3[42]",
        "",
        {"big": W.NO_ROOM, "small": W.BEHIND_RESERVATION},
        reserved={"big": "a1 a3"},
    ),
    Case(
        "what comes free in time is not kept now",
        {"a1": 8},
        "x 6[42]@a1 for 90; big 4[42]; small 1[42]; other 1[42]; more 3[42]",
        "small other",
        {"big": W.NO_ROOM, "more": W.NO_ROOM},
        reserved={"big": "a1"},
    ),
    Case(
        "but the rest is",
        {"a1": 8},
        "x 3[42]@a1 for 90; y 3[42]@a1; big 5[42]; small 1[42]",
        "",
        {"big": W.NO_ROOM, "small": W.BEHIND_RESERVATION},
        reserved={"big": "a1"},
    ),
    Case(
        "else those that lack least",
        {"a1": 4, "a2": 4, "a3": 4},
        "big 2x4[42]; x 1[42]@a1; y 4[42]@a2; z 2[42]@a3; small 2[42]",
        "",
        {"big": W.NO_ROOM, "small": W.BEHIND_RESERVATION},
        reserved={"big": "a1 a3"},
    ),
    Case(
        "others may start elsewhere",
        {"a1": 4, "a2": 4, "a3": 4},
        "big 2x4[42]; x 1[42]@a1; y 3[42]@a2; z 2[42]@a3; small 1[42]",
        "small",
        reserved={"big": "a1 a3"},
        places={"small": "a2"},
    ),
    Case(
        "after the hold limit others pass",
        TWO,
        "big 2x4[42] since 601; small 1[42]; x 3[42]@a1; y 4[42]@a2",
        "small",
        reserved={"big": ""},
    ),
    Case(
        "but not more than the bound",
        TWO,
        "big 2x4[42] since 601 overtaken 100; small 1[42]; x 3[42]@a1; y 4[42]@a2",
        "",
        {"small": W.BEHIND_RESERVATION},
        reserved={"big": "a1 a2"},
    ),
    Case(
        "apart from what would end in time even if it took twice as long",
        TWO,
        "big 2x4[42] since 14400; small 1[42] for 400; more 1[42] for 401; x 4[42]@a1 for 800",
        "small",
        {"more": W.BEHIND_RESERVATION},
        reserved={"big": "a1 a2"},
        places={"small": "a2"},
    ),
    Case(
        "and five times, when it has waited for four times the bound",
        TWO,
        "big 2x4[42] since 57600; small 1[42] for 160; more 1[42] for 161; x 4[42]@a1 for 800",
        "small",
        {"more": W.BEHIND_RESERVATION},
        reserved={"big": "a1 a2"},
        places={"small": "a2"},
    ),
    Case(
        "nor for longer than that",
        TWO,
        "big 2x4[42] since 14400; small 1[42]; x 3[42]@a1; y 4[42]@a2",
        "",
        {"small": W.BEHIND_RESERVATION},
    ),
    Case(
        "less important work starts elsewhere, beside one that is blocked",
        {"a1": 4, "a2": 4, "a3": 4},
        "big 2x4[40]; x 1[40]@a1; y 3[40]@a2; z 2[40]@a3; small 1[50]",
        "small",
        places={"small": "a2"},
    ),
    Case(
        "and nowhere beside more, which cannot all have reservations",
        {"a1": 4, "a2": 4, "a3": 4},
        "big 2x4[40]; other 2x4[40]; x 1[40]@a1; y 3[40]@a2; z 2[40]@a3; small 1[50]",
        "",
        {"small": W.BEHIND_PRIORITY},
    ),
    Case(
        "work that can be preempted uses what is kept, where the policy preempts",
        TWO,
        "big 2x4[40]; x 3[40]@a1 np; y 4[40]@a2 np; small 1[50]; notebook 1[50] np",
        "small",
        {"notebook": W.BEHIND_PRIORITY},
        policy=PREEMPTS,
    ),
    Case(
        "until enough have",
        TWO,
        "big 2x4[40] since 601 overtaken 100; x 3[40]@a1 np; y 4[40]@a2 np; small 1[50]",
        "",
        {"small": W.BEHIND_PRIORITY},
        policy=PREEMPTS,
    ),
    Case(
        "what leaves for a request that was nominated does not come free for one behind it",
        {"a": 7, "b": 3, "c": 2},
        "x 2[42]@a; y 3[42]@b for 3600; z 2[42]@a,c leaving; next 2x2[42] nominated a,c; big 2x3[42]; small 1[42] np",
        "",
        {"next": W.PREEMPTING, "big": W.NO_ROOM, "small": W.BEHIND_RESERVATION},
        reserved={"big": "a b"},
        policy=PREEMPTS,
    ),
    Case(
        "nor what comes free for one before it",
        {"a": 7, "b": 5, "c": 2},
        "x 3[42]@a for 3600; y 5[42]@b; z 2[42]@c for 3600; big 5[42] on k=1; next 2x2[42] on j=1; small 1[42] on i=1",
        "",
        {"big": W.NO_ROOM, "next": W.BEHIND_RESERVATION, "small": W.BEHIND_RESERVATION},
        kinds={"a": "i=1 j=1 k=1", "b": "k=1", "c": "j=1"},
        reserved={"big": "a", "next": "a c"},
    ),
    Case(
        "what passes and ends in time leaves more than before for the next one, in the same plan",
        {"a1": 6, "a2": 4},
        "x 3[42]@a1 for 600; y 3[42]@a2 for 3600; big 4[42]; short 3x1[50] for 480; small 1[50]",
        "short small",
        {"big": W.NO_ROOM},
        reserved={"big": "a1"},
        policy=PoolPolicy(fitting="worst"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_reservation(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("policy", [PoolPolicy(), PoolPolicy(queue="fifo"), PREEMPTS, PoolPolicy(queue="fair_share")])
@pytest.mark.parametrize("max_overtakes", [0, 5, 40])
def test_a_large_job_among_endless_small_ones_starts_within_the_bound(policy: PoolPolicy, max_overtakes: int) -> None:
    """Three nodes of 8, one job of two of them, and always more tasks of one slot than fit, each of half an hour."""
    policy = msgspec.structs.replace(policy, max_overtakes=max_overtakes)
    queue = VirtualQueue(policy, nodes={"a1": 8, "a2": 8, "a3": 8}, task_minutes=30)
    jobs = (f"s{number:04}" for number in count())
    for _ in range(24):
        queue.submit(next(jobs), (1,))
    queue.step()
    queue.submit("big", (8, 8))
    passed = 0
    for _ in range(200):
        for _ in range(3):
            queue.submit(next(jobs), (1,))
        made = queue.step()
        if any(one.job == "big" for one in queue.held.values()):
            break
        passed += sum(1 for start in made.starts)
    else:
        raise AssertionError("it never started")
    # Those that pass it on its nodes are bounded; on the third node eight start every half an hour.
    assert passed <= max_overtakes + 24 + 16 * queue.hours


def test_of_very_many_that_are_blocked_all_are_ahead_of_less_important_ones() -> None:
    hosts = range(60)
    requests = [
        *(f"busy{host} 2@n{host}" for host in hosts),
        *(f"large{host} 4[10] on host=h{host}" for host in hosts),
        *(f"low{host} 1[99] np on host=h{host}" for host in hosts),
    ]
    made = plan(
        snapshot(
            Case(
                "a line for each host",
                {f"n{host}": 4 for host in hosts},
                "; ".join(requests),
                kinds={f"n{host}": f"host=h{host} cpu 64" for host in hosts},
            )
        )
    )
    assert list(made.starts) == []


def test_a_former_head_does_not_come_before_the_present_one() -> None:
    shares = PoolPolicy(queue="fair_share", max_overtakes=0)
    pool = snapshot(Case("", {"a": 2}, "first 1 by x since 60; next 1 by x since 60; gang 2x1 by y", policy=shares))
    made = plan(pool)
    assert [start.allocation for start in made.starts] == ["first"]
    assert [head.allocation for head in made.blocked] == ["gang"]
    after = {one.allocation: one for one in remembered(made, pool.pending)}
    left = tuple(after.get(one.allocation, one) for one in pool.pending if one.allocation != "first")
    [start] = made.starts
    held = HeldAllocation(allocation="first", job="first", share="x", pods=((start.placements[0].node, 1),))
    assert not list(plan(msgspec.structs.replace(pool, pending=left, held=(held,))).starts), (
        "a slot is kept for the gang"
    )


def test_a_job_of_the_whole_cluster_starts_in_the_plan_after_the_last_slot_came_free() -> None:
    """B10: no back-off, and no kind of task is left out."""
    queue = VirtualQueue(PoolPolicy(), nodes={"a": 8, "b": 8}, task_minutes=30)
    for number in range(16):
        queue.submit(f"small{number}", (1,))
    queue.step()
    queue.submit("all", (8, 8), preemptible=False)
    while len(queue.held) > 1:
        assert not list(queue.plan_again().starts), "it would be half of it"
        made = queue.step()
    assert [start.allocation.partition(".")[0] for start in made.starts] == ["all"]
