"""Who starts next without preemption: tables of docs/reference/scheduling.md 5.4, 5.6, 9.1 and 16 as data."""

from __future__ import annotations

from operator import attrgetter

import pytest

from services.scheduler.plan.decisions import Wait
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PoolPolicy, PoolSnapshot
from tests.scenarios.queue.notation import Case, check, snapshot

W = WaitReason
WORST = PoolPolicy(fitting="worst")
A4 = {"a1": 4}
TWO = {"a1": 4, "a2": 4}

CASES = [
    # docs/reference/scheduling.md 5.4, rows without preemption
    Case(
        "older first within a priority, aux independent",
        TWO,
        "t1 4[50]; t2 1[50]; t3 1[40]; t4 0[40]; t5 4[40]; t6 0[50]",
        "t3 t5 t4 t6",
        {"t1": W.NO_ROOM, "t2": W.BEHIND_RESERVATION},
        reserved={"t1": "a1"},
        instead_of="t2 starts, too; here the slots beside t3 are kept for t1, which has waited longer (16, B4)",
    ),
    Case(
        "smaller ones pass a stuck one that has had its time",
        TWO,
        "t1 4[50] since 601; t2 1[50]; t3 1[40]; t4 0[40]; t5 4[40]; t6 0[50]",
        "t3 t5 t2 t4 t6",
        {"t1": W.NO_ROOM},
        reserved={"t1": ""},
    ),
    Case(
        "a stuck task does not hold back smaller ones of its priority",
        TWO,
        "t1 4[50] since 601; t2 1[50]@a2; t3 1[40]@a2; t5 4[40]@a1; t7 1[50]; t8 1[50]; t9 1[50]",
        "t7 t8",
        {"t1": W.NO_ROOM, "t9": W.NO_ROOM},
    ),
    Case(
        "a stuck task holds back every lower priority",
        TWO,
        "t1 4[50]@a1; t2 1[50]; t3 2x4[40]",
        "",
        {"t3": W.NO_ROOM, "t2": W.BEHIND_PRIORITY},
    ),
    Case("one slot in a pool that has none", {"a": 0}, "t1 1 np; t2 0", "t2", {"t1": W.TOO_LARGE}),
    Case(
        "what no waiting would help holds back nobody",
        TWO,
        "t1 4[50]; t2 1[50]; t3 3x4[40]",
        "t1 t2",
        {"t3": W.TOO_LARGE},
    ),
    Case(
        "what has become possible waits for room like others, and holds back lower priorities",
        {"a1": 4, "a2": 4, "a3": 4},
        "t1 4[50]@a1; t2 1[50]; t3 3x4[40]",
        "",
        {"t3": W.NO_ROOM, "t2": W.BEHIND_PRIORITY},
    ),
    Case(
        "what tasks of other pools hold is waited for",
        TWO,
        "t1 2x4[40]; t2 1[50]",
        "",
        {"t1": W.NO_ROOM, "t2": W.BEHIND_PRIORITY},
        lent={"a2": 1},
    ),
    Case("nothing starts where another pool is", TWO, "t1 4[40]; t2 4[40]", "t1", {"t2": W.NO_ROOM}, lent={"a1": 4}),
    Case("all of mixed priorities fit", TWO, "t1 4[50]; t2 1[50]; t3 1[40]; t4 1[40]; t6 1[50]", "t3 t4 t1 t2 t6"),
    Case("room freed goes to the higher priority first", TWO, "t1 4[50]; t7 4[40]", "t7 t1"),
    Case(
        "what fits beside the important ones waits behind the stuck one",
        A4,
        "t1 1[50]; t2 1[40]; t3 1[40]; t4 1[40]; t5 2[40]",
        "t2 t3 t4",
        {"t5": W.NO_ROOM, "t1": W.BEHIND_PRIORITY},
    ),
    Case(
        "nothing starts in a full pool",
        A4,
        "t2 1[40]@a1; t3 1[40]@a1; t4 1[40]@a1; t1 1[50]; t5 2[40]",
        "",
        {"t5": W.NO_ROOM, "t1": W.BEHIND_PRIORITY},
    ),
    Case("then both start", A4, "t1 1[50]; t5 2[40]", "t5 t1"),
    Case("aux places are limited", A4, "t1 0[50]; t2 0[50]", "t1", {"t2": W.NO_AUX_ROOM}, aux=1),
    Case("aux places in use count", A4, "t1 0[50]@a1; t3 0[40]", "", {"t3": W.NO_AUX_ROOM}, aux=1),
    Case(
        "101st aux task waits", A4, "; ".join(f"t{i} 0[42]" for i in range(101)), " ".join(f"t{i}" for i in range(100))
    ),
    Case(
        "sorted by priority, then by age",
        {"a1": 9},
        "t4 0[40]; t3 0[40]; t2 1[50]; t1 1[50]; t6 1[40]; t5 1[40]",
        "t6 t5 t2 t1 t4 t3",
    ),
    # Kubernetes: larger is more important
    Case(
        "larger priority first on Kubernetes",
        {"a1": 1},
        "t1 1[42]; t2 1[50]",
        "t2",
        policy=PoolPolicy(larger_priority_first=True),
    ),
    Case("a stuck gang does not hold back aux work", A4, "t1 2x4[40]; t2 0[50]", "t2", {"t1": W.TOO_LARGE}),
    # 16 (B1): gangs
    Case("16 slots on 12 start nothing", {"a": 4, "b": 4, "c": 4}, "t1 4x4[42]", "", {"t1": W.TOO_LARGE}),
    Case("of two 12-slot gangs one runs", {"a": 4, "b": 4, "c": 4}, "t1 3x4[42]; t2 3x4[42]", "t1", {"t2": W.NO_ROOM}),
    Case("pods of a gang may share a node", {"a": 8}, "t1 2x4[42]", "t1", places={"t1": "a a"}),
    Case("a gang that fails leaves nothing behind", TWO, "t1 3x2[42]@a1,a1,a2; t2 2x2[42] since 601; t3 1[42]", "t3"),
    # best and worst fit (4.3)
    Case("best fit takes the fullest node that fits", {"a": 4, "b": 2}, "t1 2[42]", "t1", places={"t1": "b"}),
    Case("worst fit takes the emptiest", {"a": 2, "b": 4}, "t1 2[42]", "t1", places={"t1": "b"}, policy=WORST),
    Case("aux work packs", {"a": 4, "b": 4}, "t0 0[42]@b; t1 0[42]", "t1", places={"t1": "b"}),
    # blocked nodes (4.6)
    Case("a blocked node is passed over", TWO, "t1 1[42] not a1", "t1", places={"t1": "a2"}),
    Case(
        "what log policies leave no node holds back nobody",
        A4,
        "t1 1[40] not a1; t2 1[50]",
        "t2",
        {"t1": W.NODES_EXCLUDED},
    ),
    Case("disabled and draining nodes take nothing new", TWO, "t1 4[42]", "t1", places={"t1": "a2"}, unavailable="a1"),
    Case(
        "what needs a node that is out of service says so",
        TWO,
        "t1 2x4[42]; t2 3x4[42]; t3 4[42] not a2",
        "",
        {"t1": W.OUT_OF_SERVICE, "t2": W.TOO_LARGE, "t3": W.OUT_OF_SERVICE},
        unavailable="a1",
    ),
    Case("a gang counts only nodes that it may use", TWO, "t1 2x4[42] not a1", "", {"t1": W.NODES_EXCLUDED}),
    Case("held slots of a vanished node harm nobody", A4, "t0 4[42]@gone; t1 4[42]", "t1"),
    # max_slots (9.1, 15) and quotas (9.2)
    Case(
        "max_slots of a job is respected, and holds back nobody else",
        {"a": 8},
        "t1:j 1[42]@a; t2:j 1[42]; t3:j 1[42]; t4 1[50]",
        "t2 t4",
        {"t3": W.JOB_MAX_SLOTS},
        max_slots={"j": 2},
    ),
    Case(
        "who has to wait for its own job after all no longer waits for room, and holds back nobody",
        {"a": 8},
        "t0 4[42]@a; t1:j 6[42] since 601; t2:j 1[42]; t3 1[50]",
        "t2 t3",
        {"t1": W.JOB_MAX_SLOTS},
        max_slots={"j": 6},
    ),
    Case(
        "a job that was moved starts where it stands now, among those of its priority",
        {"a": 2},
        "t1 1[42]; t2 1[42]; t3 1[42] at 0.5; t4 1[50] at 0",
        "t1 t3",
        {"t2": W.NO_ROOM, "t4": W.BEHIND_PRIORITY},
    ),
    Case("max_slots does not count aux work", A4, "t1:j 0[42]", "t1", max_slots={"j": 0}),
    Case(
        "a quota holds back what exceeds it",
        {"a": 8},
        "t1 4[42]@a; t2 4[42]; t3 1[42]",
        "t3",
        {"t2": W.POOL_QUOTA},
        quota=5,
    ),
    Case(
        "a used up quota of the pool holds back what is less important",
        {"a": 8},
        "t1 4[42]@a; t2 4[40]; t3 1[42]",
        "",
        {"t2": W.POOL_QUOTA, "t3": W.BEHIND_PRIORITY},
        quota=5,
    ),
    Case(
        "the quota of a workspace concerns its namespace only, and that of the pool no workspace",
        {"a": 8},
        "t1 2[42]@a in team; t2 1[42] in team; t3 2[42]; t4 2[42] in free; t5 1[42]",
        "t3 t4",
        {"t2": W.WORKSPACE_QUOTA, "t5": W.POOL_QUOTA},
        quota=2,
        quotas={"team": 2},
    ),
    Case(
        "who waits for the quota of a workspace holds back its own workspace",
        {"a": 8},
        "t1 2[42]@a in team; t2 2[40] in team; t3 1[42] in team; t4 1[42]",
        "t4",
        {"t2": W.WORKSPACE_QUOTA, "t3": W.BEHIND_PRIORITY},
        quotas={"team": 3},
    ),
    Case(
        "what other pools hold of a quota counts, and takes no room here",
        {"a": 4},
        "t1 2[42]@elsewhere in team; t2 2[42] in team; t3 4[42]",
        "t3",
        {"t2": W.WORKSPACE_QUOTA},
        quotas={"team": 3},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_queue(case: Case) -> None:
    check(case)


def test_nothing_starts_while_the_capacity_is_unknown() -> None:
    pool = snapshot(Case("", A4, "t1 1[42]; t2 0[42]", ""))
    unknown = PoolSnapshot(nodes=None, pending=pool.pending)
    assert plan(unknown).decisions == (Wait("t1", W.CAPACITY_UNKNOWN), Wait("t2", W.CAPACITY_UNKNOWN))
