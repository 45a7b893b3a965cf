"""Who gets which part of a pool: the tables of docs/reference/scheduling.md 5.3.

Offers of slots there are starts here, as tasks of one slot are what is asked for. The owner of a job is the job itself
unless a share is named.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter

import pytest

from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PoolPolicy
from tests.scenarios.queue.notation import Case, check, snapshot
from tests.scenarios.queue.virtual_queue import VirtualQueue

W = WaitReason
FAIR = PoolPolicy(queue="fair_share")
ROUND_ROBIN = PoolPolicy(queue="round_robin")


def tasks(job: str, count: int, slots: int = 1) -> str:
    return "; ".join(f"{job}{number}:{job} {slots}" for number in range(count))


OFFERS = [
    (8, {"A": (10, 1), "B": (30, 1)}, {"A": 4, "B": 4}),
    (8, {"A": (10, 3), "B": (30, 1)}, {"A": 6, "B": 2}),
    (10, {"A": (2, 1), "B": (20, 1), "C": (20, 2)}, {"A": 2, "B": 3, "C": 5}),
    (3, {"A": (4, 1), "B": (4, 1)}, {"A": 2, "B": 1}),
    # There B, which asks for less: jobs that ask for more would wait for ever beside such that come again and again.
    (1, {"A": (2, 1), "B": (1, 1)}, {"A": 1}),
]


@pytest.mark.parametrize(("slots", "wanted", "offers"), OFFERS, ids=str)
def test_offers(slots: int, wanted: dict[str, tuple[int, float]], offers: dict[str, int]) -> None:
    case = Case(
        "",
        {"a": slots},
        "; ".join(tasks(job, count) for job, (count, _) in wanted.items()),
        policy=FAIR,
        weights={job: weight for job, (_, weight) in wanted.items()},
    )
    assert Counter(start.allocation[0] for start in plan(snapshot(case)).starts) == offers


SHARES = {"x": "red/x", "y": "red/y", "z": "blue/z"}
ZERO = dict.fromkeys((f"G{number}" for number in range(9)), 0.0)
CASES = [
    Case("A one 8-slot, B one 8-slot", {"a": 8}, "A 8; B 8", "A", {"B": W.NO_ROOM}, policy=FAIR),
    Case("A one 8-slot, B one 16-slot", {"a": 8, "b": 8}, "A 8; B 2x8", "A", {"B": W.NO_ROOM}, policy=FAIR),
    Case(
        "tasks of 4 slots against tasks of 8",
        {"a": 8},
        "A1:A 4; A2:A 4; A3:A 4; A4:A 4; B1:B 8; B2:B 8",
        "A1 A2",
        {"B1": W.NO_ROOM, "A3": W.NO_ROOM},
        policy=FAIR,
    ),
    Case(
        "max_slots bounds the demand",
        {"a": 4},
        "t1:G1 1; t2:G1 1; t3:G1 1; t4:G1 1; t5:G2 1; t6:G2 1; t7:G2 1; t8:G2 1",
        "t1 t5 t6 t7",
        {"t2": W.JOB_MAX_SLOTS},
        policy=FAIR,
        max_slots={"G1": 1},
        weights={"G1": 1, "G2": 0},
    ),
    Case(
        "by weight",
        {"a": 8},
        "t1:G1 1; t2:G1 1; t3:G1 1; t4:G2 1; t5:G2 1; t6:G2 1; t7:G2 1; t8:G2 1; t9:G2 1; t10:G2 1",
        "t1 t4 t5 t6 t2 t7 t8 t9",
        policy=FAIR,
        max_slots={"G1": 100, "G2": 100},
        weights={"G1": 10, "G2": 30},
    ),
    Case("both whole nodes", {"a1": 4, "a2": 4}, "t1:G1 4; t2:G2 4", "t1 t2", policy=FAIR, weights=ZERO),
    Case(
        "max_slots that was lowered: the newest leave",
        {"a": 4},
        "t1:G1 1@a; t2:G1 1@a; t3:G1 1@a; t4:G1 1@a",
        preempts="t3> t4>",
        policy=FAIR,
        max_slots={"G1": 2},
        instead_of="t1 and t2, the oldest (16, B12)",
    ),
    Case(
        "max_slots counts what runs",
        {"a1": 2, "a2": 2},
        "t1:G1 2; t2:G1 1@a1; t3:G1 1@a2",
        "",
        {"t1": W.JOB_MAX_SLOTS},
        policy=FAIR,
        max_slots={"G1": 2},
    ),
    Case("no room for both", {"a": 2}, "t1:G1 2; t2:G2 2", "t1", {"t2": W.NO_ROOM}, policy=FAIR, weights=ZERO),
    Case("too large is in nobody's way", {"a": 4}, "t1:G1 5; t2:G2 4", "t2", {"t1": W.TOO_LARGE}, policy=FAIR),
    Case(
        "what has waited longest first, then what is left",
        {"a1": 4, "a2": 3},
        "t1:G1 3; t2:G2 1; t3:G2 1@a2; t4:G3 4; t5:G4 1",
        "t1 t5 t2",
        {"t4": W.NO_ROOM},
        policy=FAIR,
        weights=ZERO,
    ),
    Case(
        "excluded nodes",
        {"a": 1},
        "t0 1 not a; t1 1",
        "t1",
        {"t0": W.NODES_EXCLUDED},
        policy=FAIR,
    ),
    Case(
        "equal shares do not take turns",
        {"a0": 1, "a1": 1},
        "t0 1 not a0,a1; t1 1@a0; t2 1 not a0; t3 1@a1",
        "",
        {"t0": W.NODES_EXCLUDED, "t2": W.NO_ROOM},
        policy=FAIR,
        instead_of="t3 is released for t2, which would then hold as much as t3 holds now: that goes round for ever",
    ),
    Case(
        "what runs already leaves only for others",
        {"a0": 1},
        "t0 1 not a0; t1 1 not a0; t2 1 not a0; t3 1@a0",
        policy=FAIR,
    ),
    Case(
        "who holds more gives back",
        {"a": 8},
        f"{'; '.join(f'A{number}:A 1@a saved {number}' for number in range(8))}; {tasks('B', 8)}",
        "",
        {"B0": W.PREEMPTING, "B4": W.NO_ROOM},
        preempts="A0>B0 A1>B1 A2>B2 A3>B3",
        policy=FAIR,
    ),
    Case(
        "what is held as one gang is not taken back",
        {"a": 8},
        "A1:A 8@a; B1:B 1",
        "",
        {"B1": W.NO_ROOM},
        policy=FAIR,
        instead_of="A1, which then waits for half of the node and cannot start in it: shares would take turns for ever",
    ),
    Case(
        "a share that holds much has nothing kept that one without anything could use",
        {"a": 8},
        "; ".join(f"g{number}:g 1@a" for number in range(8)) + "; r:g 8 since 20000; b 1",
        "",
        {"b": W.PREEMPTING},
        preempts="g7>b",
        policy=FAIR,
    ),
    Case(
        "what one share may not take another one may",
        {"a": 8},
        "g1:g 2@a; g2:g 2@a; g3:g 2@a; g4:g 2@a; r:g 2 since 60; nb 2 np",
        "",
        {"r": W.NO_ROOM, "nb": W.PREEMPTING},
        preempts="g4>nb",
        policy=FAIR,
    ),
    Case(
        "and no more than to the same share",
        {"a": 8},
        f"{'; '.join(f'A{number}:A 1@a' for number in range(4))}; "
        f"{'; '.join(f'B{number}:B 1@a' for number in range(4))}; B9:B 1",
        "",
        {"B9": W.NO_ROOM},
        policy=FAIR,
    ),
    Case(
        "shares within shares: the teams first, then their people",
        {"a": 8},
        "; ".join(f"{name}{number} 1 by {SHARES[name]}" for name in "xyz" for number in range(8)),
        "x0 z0 y0 z1 x1 z2 y1 z3",
        policy=FAIR,
    ),
    Case(
        "who waits longest takes nothing that would be asked back at once for a share that has less",
        {"a": 8},
        "A1:A 2@a; A2:A 2@a; A3:A 2 since 9000; C:C 4",
        "C",
        {"A3": W.NO_ROOM},
        policy=FAIR,
    ),
    Case(
        "and comes before the others of that share that would have more then",
        {"a": 8},
        "A1:A 2@a; A2:A 2 since 9000; C1:C 2; C2:C 2; C3:C 2",
        "C1 A2 C2",
        {"C3": W.NO_ROOM},
        policy=FAIR,
    ),
    Case(
        "who waits longest is passed by a share that has as much then",
        {"a": 9},
        "A1:A 1@a np; A2:A 8 since 60; B:B 1",
        "B",
        {"A2": W.NO_ROOM},
        policy=FAIR,
    ),
    Case(
        "but not for ever",
        {"a": 9},
        "A1:A 1@a np; A2:A 8 since 14400; B:B 1",
        "A2",
        {"B": W.NO_ROOM},
        policy=FAIR,
    ),
    Case(
        "nor by any number of them",
        {"a": 9},
        "A1:A 1@a np; A2:A 8 since 60 overtaken 100; B:B 1",
        "A2",
        {"B": W.NO_ROOM},
        policy=FAIR,
    ),
    Case(
        "round robin counts allocations, and takes nothing back",
        {"a": 7},
        "A1:A 4@a; A2:A 4 since 601; B1:B 1; B2:B 1; B3:B 1",
        "B1 B2 B3",
        {"A2": W.NO_ROOM},
        policy=ROUND_ROBIN,
    ),
    Case(
        "what is kept for the next in turn is not taken by others",
        {"a": 8},
        "A1:A 4; A2:A 4; B1:B 1; B2:B 1; B3:B 1",
        "A1 B1",
        {"A2": W.NO_ROOM, "B2": W.BEHIND_RESERVATION},
        policy=ROUND_ROBIN,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_fair_share(case: Case) -> None:
    check(case)


def test_equal_shares_take_turns() -> None:
    """Twelve jobs with a task of one slot each, and another one when it ends, on eight slots."""
    queue = VirtualQueue(FAIR, nodes={"a": 8}, task_minutes=30)
    ran: Counter[str] = Counter()
    for _ in range(12 * 60):
        busy = {one.job for one in (*queue.held.values(), *queue.pending)}
        for job in sorted({f"s{number:02}" for number in range(12)} - busy):
            queue.submit(job, (1,))
        ran.update(start.allocation.partition(".")[0] for start in queue.step().starts)
    assert len(ran) == 12
    assert max(ran.values()) <= 2 * min(ran.values())


@pytest.mark.parametrize("policy", [FAIR, ROUND_ROBIN], ids=["fair share", "round robin"])
def test_a_large_task_of_a_share_that_holds_as_much_as_others_starts_within_the_bound(policy: PoolPolicy) -> None:
    """Every five minutes there is a small job of somebody else, which holds no more than the share of the large one."""
    queue = VirtualQueue(policy, nodes={"a": 9}, task_minutes=50)
    queue.submit("large", (1,), preemptible=False)
    queue.step()
    queue.submit("large", (8,), preemptible=False)
    large = queue.pending[-1].allocation
    while large not in queue.held:
        assert queue.hours < 8, "it is passed for four hours, and waits until those that run have ended"
        if not int(queue.hours * 60) % 5:
            queue.submit(f"small{queue.now}", (1,), preemptible=False)
        if not any(one.job == "large" for one in queue.held.values()):
            queue.submit("large", (1,), preemptible=False)
        queue.step()


def test_shares_of_different_sizes_do_not_take_the_same_slots_in_turn() -> None:
    queue = VirtualQueue(FAIR, nodes={"a": 8}, task_minutes=10_000)
    for job, slots in (("c", 4), ("c", 4), ("b", 6)):
        queue.submit(job, (slots,))
    preempted = sum(len(queue.step().preempted) for _ in range(600))
    assert preempted <= 2
