"""Milliseconds of a plan of 10,000 requests on 1,000 nodes with 8 slots, where 2,000 allocations run, for each policy,
beside a bare pass over the same structs; the same where each job is a share, beside shares of users; where more than
slots is known of nodes and pods, beside slots alone; where gangs are to be in one rack or zone, beside gangs that may
be anywhere; where others could be moved, but in vain, beside plans that may not; where plans divide slots into pods,
beside pods of one size; and how a plan grows from 1,000 to 100,000 requests.

The growth is printed as that to the power of which it grows: 1 is linear. docs/architecture.md 8 asks for less than a
second for 100,000 requests.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from services.scheduler.plan.nodes.eligible import EligibilityMemo
from services.scheduler.plan.ordering.ranking import ranking
from services.scheduler.plan.planner import plan
from services.scheduler.plan.preemption.searched import SearchMemo
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolPolicy, PoolSnapshot
from tests.bench.racks import with_racks
from tests.bench.required_nodes import with_requirements
from tests.bench.result import Result
from tests.bench.system import BenchSystem

NODES: Final = 1000
MANY_NODES: Final = 5000
MOST_NODES: Final = 10_000
DIVIDED: Final = 3000
UNEVEN: Final = (11, 13, 17, 19, 23)
SLOTS: Final = 8
RUNNING: Final = 2000
FEW, REQUESTS, MANY = 1000, 10_000, 100_000
USERS: Final = 50
SHAPES: Final = ((0,), (1,), (1,), (2,), (4,), (8,), (8,) * 2, (8,) * 16)
ROUNDS: Final = 3
SEARCHES: Final = 50
"""Plans that search for moves before one is measured."""
START: Final = datetime(2030, 1, 1, tzinfo=UTC)
NOW: Final = START + timedelta(days=1)
POLICIES: Final = {
    "fifo": PoolPolicy(queue="fifo"),
    "priority": PoolPolicy(),
    "preemption": PoolPolicy(preemption=True),
    "fair share": PoolPolicy(queue="fair_share"),
    "round robin": PoolPolicy(queue="round_robin"),
}


async def measure(_: BenchSystem) -> list[Result]:
    results: list[Result] = []
    for name, policy in POLICIES.items():
        pool = snapshot(NODES, REQUESTS, policy)
        bare, took = _alternately(lambda: _bare_pass(pool), lambda: plan(pool))  # noqa: B023
        results.append(_result(f"plan of 10k requests, {name}", took, bare, goal=20))
    for name in ("fair share", "round robin"):
        of_users = snapshot(NODES, REQUESTS, POLICIES[name])
        pool = _by_job(of_users)
        without, took = _alternately(lambda: plan(of_users), lambda: plan(pool))  # noqa: B023
        results.append(_result(f"with each job a share, {name}", took, without, goal=3))
    for name, policy in POLICIES.items():
        slots_alone = snapshot(NODES, REQUESTS, policy)
        pool, memo = with_requirements(slots_alone), EligibilityMemo()
        without, took = _alternately(lambda: plan(slots_alone), lambda: plan(pool, memo))  # noqa: B023
        results.append(_result(f"with what pods require of nodes, {name}", took, without, goal=3))
    for name, policy in POLICIES.items():
        anywhere = with_requirements(snapshot(NODES, REQUESTS, policy))
        pool, memo = with_racks(anywhere), EligibilityMemo()
        without, took = _alternately(lambda: plan(anywhere, memo), lambda: plan(pool, memo))  # noqa: B023
        results.append(_result(f"with gangs in one rack, {name}", took, without, goal=2))
    for name, policy in POLICIES.items():
        pools = [snapshot(NODES, count, policy) for count in (FEW, MANY)]
        few, many = _alternately(*(lambda pool=pool: plan(pool) for pool in pools))
        grown = math.log(many / few, MANY / FEW)
        results.append(_result(f"from 1k to 100k requests, {name}, ^{grown:.2f}", many, few, goal=(MANY / FEW) ** 1.3))
    resting, memo = with_requirements(_scattered(REQUESTS)), EligibilityMemo()
    moving, memo_of_moving, searched = msgspec.structs.replace(resting, moves_left=100), EligibilityMemo(), SearchMemo()
    for _round in range(SEARCHES):
        plan(moving, memo_of_moving, searched)
    without, took = _alternately(lambda: plan(resting, memo), lambda: plan(moving, memo_of_moving, searched))
    results.append(_result("with moves that were searched in vain", took, without, goal=1.5))
    in_equal_pods, divided = _divided(MOST_NODES, DIVIDED)
    without, took = _alternately(lambda: plan(in_equal_pods), lambda: plan(divided))
    results.append(_result("3k starts on 10k nodes, in pods of any size", took, without, goal=5))
    for name, policy in POLICIES.items():
        pool = snapshot(MANY_NODES, MANY, policy)
        bare, took = _alternately(lambda: _bare_pass(pool), lambda: plan(pool))  # noqa: B023
        results.append(_result(f"100k requests, 5k nodes, {name}", took, bare, goal=20))
    return results


def snapshot(nodes: int, waiting: int, policy: PoolPolicy) -> PoolSnapshot:
    """Jobs of several sizes and priorities, some with limits, some that say how long they run, some that can be
    preempted, some with nodes that log policies have excluded."""
    rng = random.Random(7)
    names = [f"node{number:05}" for number in range(nodes)]
    pending = [
        PendingAllocation(
            allocation=f"a{number}",
            job=f"j{number}",
            share=f"u{rng.randrange(USERS)}",
            pods=rng.choice(SHAPES),
            priority=rng.choice((40, 42, 42, 42, 50)),
            submitted_at=START + timedelta(seconds=rng.randrange(86_400)),
            requested_at=START + timedelta(seconds=number),
            blocked_nodes=frozenset(rng.sample(names, 2)) if number % 50 == 0 else frozenset(),
            preemptible=rng.random() < 0.8,
            runs_for=timedelta(hours=rng.choice((1, 4, 24))) if rng.random() < 0.5 else None,
        )
        for number in range(waiting)
    ]
    return PoolSnapshot(
        nodes=tuple(NodeSlots(name=name, slots=SLOTS, max_aux=100) for name in names),
        held=tuple(_held(names, rng)),
        pending=tuple(pending),
        max_slots_by_job={f"j{number}": 4 for number in range(0, waiting, 10)},
        policy=policy,
        now=NOW,
    )


def _scattered(waiting: int) -> PoolSnapshot:
    """Each node has 2 slots free, 2 that can be moved and 4 that cannot, and all requests are for more."""
    rng = random.Random(13)
    pool = msgspec.structs.replace(snapshot(NODES, waiting, PoolPolicy()), max_slots_by_job={})
    held = [
        HeldAllocation(
            allocation=f"h{slots} {node.name}",
            job=f"h{slots} {node.name}",
            pods=((node.name, slots),),
            started_at=START,
            preemptible=True,
            movable=slots == 2,
        )
        for node in pool.nodes or ()
        for slots in (4, 2)
    ]
    pending = (msgspec.structs.replace(one, pods=(rng.choice((5, 6, 7, 8)),)) for one in pool.pending)
    return msgspec.structs.replace(pool, held=tuple(held), pending=tuple(pending))


def _divided(nodes: int, waiting: int) -> tuple[PoolSnapshot, PoolSnapshot]:
    """Requests that have room on nodes of which some is taken: for pods of 4 slots, and for about as many that pods of
    one size, of 8 slots at most, cannot make up."""
    rng = random.Random(11)
    pool = msgspec.structs.replace(snapshot(nodes, waiting, PoolPolicy()), max_slots_by_job={})
    sizes = [rng.choice(UNEVEN) for _ in pool.pending]

    def asking(pods: Callable[[int], tuple[int, ...]], most: int) -> PoolSnapshot:
        pending = (
            msgspec.structs.replace(one, pods=pods(size), most_per_pod=most)
            for one, size in zip(pool.pending, sizes, strict=True)
        )
        return msgspec.structs.replace(pool, pending=tuple(pending))

    return asking(lambda size: (4,) * (size // 4), 0), asking(lambda size: (1,) * size, SLOTS)


def _by_job(pool: PoolSnapshot) -> PoolSnapshot:
    """The same where each job has a share within that of its user, as in pools that are divided by users."""
    return msgspec.structs.replace(
        pool,
        held=tuple(msgspec.structs.replace(one, share=f"{one.share}/{one.job}") for one in pool.held),
        pending=tuple(msgspec.structs.replace(one, share=f"{one.share}/{one.job}") for one in pool.pending),
    )


def _held(names: list[str], rng: random.Random) -> list[HeldAllocation]:
    held: list[HeldAllocation] = []
    for name in rng.sample(names, len(names)):
        free = SLOTS
        while free and len(held) < RUNNING:
            slots = min(free, rng.choice((1, 2, 4, 8)))
            free -= slots
            number = len(held)
            held.append(
                HeldAllocation(
                    allocation=f"h{number}",
                    job=f"hj{number}",
                    share=f"u{rng.randrange(USERS)}",
                    pods=((name, slots),),
                    priority=rng.choice((40, 42, 50)),
                    submitted_at=START + timedelta(seconds=number),
                    requested_at=START + timedelta(seconds=number),
                    preemptible=rng.random() < 0.8,
                    started_at=START + timedelta(seconds=number),
                    ends_at=NOW + timedelta(seconds=rng.randrange(86_400)) if rng.random() < 0.7 else None,
                )
            )
    return held


def _bare_pass(pool: PoolSnapshot) -> None:
    """Rank what waits, and look once at everything."""
    rank = ranking(pool.policy)
    sum(request.slots for request in sorted(pool.pending, key=rank))
    sum(held.slots for held in pool.held)
    sum(node.slots for node in pool.nodes or ())


def _alternately(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of the processor that each takes at least, by turns: what else the machine does hits both."""
    took: tuple[list[float], list[float]] = [], []
    for _ in range(ROUNDS):
        for work, times in zip((first, second), took, strict=True):
            began = time.process_time()
            work()
            times.append((time.process_time() - began) * 1000)
    return min(took[0]), min(took[1])


def _result(name: str, value: float, baseline: float, *, goal: float) -> Result:
    return Result(name=name, value=value, unit="ms", baseline=baseline, goal=goal, better="lower")
