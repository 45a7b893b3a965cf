"""A large job among small ones starts within a bound: docs/reference/scheduling.md 16, B4."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter

import msgspec
import pytest

from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolPolicy, PoolSnapshot
from tests.scenarios.queue.notation import NOW, Case, check

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
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_reservation(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("policy", [PoolPolicy(), PoolPolicy(queue="fifo"), PREEMPTS, PoolPolicy(queue="fair_share")])
@pytest.mark.parametrize("max_overtakes", [0, 5, 40])
def test_a_large_job_among_endless_small_ones_starts_within_the_bound(policy: PoolPolicy, max_overtakes: int) -> None:
    """Three nodes of 8, one job of two of them, and always more tasks of one slot than fit, each of half an hour."""
    policy = msgspec.structs.replace(policy, max_overtakes=max_overtakes)
    queue = _Queue(policy)
    for _ in range(24):
        queue.submit()
    queue.step()
    queue.pending.append(_request("big", (8, 8), queue))
    passed = 0
    for _ in range(200):
        for _ in range(3):
            queue.submit()
        made = queue.step()
        if "big" in queue.held:
            break
        passed += sum(1 for start in made.starts)
    else:
        raise AssertionError("it never started")
    # Those that pass it on its nodes are bounded; on the third node eight start every half an hour.
    hours = (queue.now - NOW) / timedelta(hours=1)
    assert passed <= max_overtakes + 24 + 16 * hours


class _Queue:
    """A pool in virtual time: one plan a minute, carried out at once."""

    def __init__(self, policy: PoolPolicy) -> None:
        self.policy = policy
        self.now = NOW
        self.pending: list[PendingAllocation] = []
        self.held: dict[str, HeldAllocation] = {}
        self._count = 0

    def submit(self) -> None:
        self._count += 1
        self.pending.append(_request(f"s{self._count:04}", (1,), self))

    def step(self) -> Plan:
        self.now += timedelta(minutes=1)
        over = self.now - timedelta(minutes=30)
        self.held = {name: one for name, one in self.held.items() if one.started_at > over and not one.leaving}
        nodes = tuple(NodeSlots(name=name, slots=8, max_aux=0) for name in ("a1", "a2", "a3"))
        pool = PoolSnapshot(
            nodes=nodes,
            held=tuple(self.held.values()),
            pending=tuple(self.pending),
            policy=self.policy,
            now=self.now,
        )
        made = plan(pool)
        self._carry_out(made)
        return made

    def _carry_out(self, made: Plan) -> None:
        leaving = {one.allocation for one in made.preempted}
        self.held = {
            name: msgspec.structs.replace(one, leaving=one.leaving or name in leaving)
            for name, one in self.held.items()
        }
        starts = {start.allocation: start.placements for start in made.starts}
        blocked = {one.allocation: one for one in made.blocked}
        nominated = {one.allocation: one.placements for one in made.nominated}
        left: list[PendingAllocation] = []
        for request in self.pending:
            name = request.allocation
            if name in starts:
                self.held[name] = HeldAllocation(
                    allocation=name,
                    job=name,
                    pods=tuple((place.node, place.slots) for place in starts[name]),
                    priority=request.priority,
                    submitted_at=request.submitted_at,
                    requested_at=request.requested_at,
                    preemptible=True,
                    started_at=self.now,
                )
                continue
            head = blocked.get(name)
            left.append(
                msgspec.structs.replace(
                    request,
                    nominated=nominated.get(name, request.nominated),
                    blocked_at=head.since if head else request.blocked_at,
                    overtaken=head.overtaken if head else request.overtaken,
                )
            )
        self.pending = left


def _request(name: str, pods: tuple[int, ...], queue: _Queue) -> PendingAllocation:
    at = queue.now
    return PendingAllocation(
        allocation=name, job=name, pods=pods, priority=42, submitted_at=at, requested_at=at, preemptible=True
    )
