"""What holds for any pool: no node oversold, no gang split, nobody over a limit, the same plan for shuffled input."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.plan.decisions import Start
from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolSnapshot

T = TypeVar("T")
START = datetime(2030, 1, 1, tzinfo=UTC)
NODES = ("a", "b", "c", "d")


@st.composite
def pools(draw: st.DrawFn) -> PoolSnapshot:
    nodes = tuple(
        NodeSlots(
            name=name,
            slots=draw(st.integers(0, 8)),
            lent=draw(st.sampled_from((0, 0, 1, 4))),
            max_aux=draw(st.integers(0, 3)),
            available=draw(st.booleans()) or draw(st.booleans()),
        )
        for name in draw(st.sets(st.sampled_from(NODES)))
    )
    jobs = st.sampled_from(("j1", "j2", "j3"))
    namespaces = st.sampled_from(("", "n1", "n2"))
    held = tuple(
        HeldAllocation(
            allocation=f"h{i}",
            job=draw(jobs),
            pods=((draw(st.sampled_from(NODES)), draw(st.integers(0, 4))),),
            namespace=draw(namespaces),
        )
        for i in range(draw(st.integers(0, 4)))
    )
    pending = tuple(
        PendingAllocation(
            allocation=f"p{i}",
            job=draw(jobs),
            pods=(draw(st.integers(0, 4)),) * draw(st.integers(1, 3)),
            priority=draw(st.sampled_from((10, 42, 99))),
            submitted_at=START + timedelta(seconds=draw(st.integers(0, 2))),
            requested_at=START + timedelta(seconds=draw(st.integers(0, 2))),
            blocked_nodes=draw(st.frozensets(st.sampled_from(NODES), max_size=2)),
            namespace=draw(namespaces),
        )
        for i in range(draw(st.integers(0, 12)))
    )
    return PoolSnapshot(
        nodes=nodes,
        held=held,
        pending=pending,
        max_slots_by_job=draw(st.dictionaries(jobs, st.integers(0, 6))),
        quota_slots=draw(st.none() | st.integers(0, 12)),
        quota_by_namespace=draw(st.dictionaries(st.sampled_from(("n1", "n2")), st.integers(0, 6))),
        larger_priority_first=draw(st.booleans()),
        fitting=draw(st.sampled_from(("best", "worst"))),
    )


@given(pools())
def test_plan_is_sound(pool: PoolSnapshot) -> None:
    decisions = plan(pool)
    assert sorted(decision.allocation for decision in decisions) == sorted(r.allocation for r in pool.pending)
    requests = {request.allocation: request for request in pool.pending}
    nodes = {node.name: node for node in pool.nodes or ()}
    slots: Counter[str] = Counter()
    aux: Counter[str] = Counter()
    by_job: Counter[str] = Counter()
    in_namespace: Counter[str] = Counter()
    for held in pool.held:
        by_job[held.job] += held.slots
        for node, count in held.pods:
            slots[node] += count
            aux[node] += not count
        in_namespace[held.namespace] += held.slots
    started_on: set[str] = set()
    started = [decision for decision in decisions if isinstance(decision, Start)]
    for start in started:
        request = requests[start.allocation]
        assert tuple(place.slots for place in start.placements) == request.pods, "whole gangs only"
        by_job[request.job] += request.slots
        in_namespace[request.namespace] += request.slots
        for place in start.placements:
            assert nodes[place.node].available
            assert place.node not in request.blocked_nodes
            slots[place.node] += place.slots
            aux[place.node] += not place.slots
            started_on.add(place.node)
    for node in started_on:
        placed = [place for start in started for place in start.placements if place.node == node]
        assert slots[node] <= nodes[node].slots - nodes[node].lent or not any(place.slots for place in placed)
        assert aux[node] <= nodes[node].max_aux or all(place.slots for place in placed)
    for start in started:
        request = requests[start.allocation]
        if request.slots:
            assert by_job[request.job] <= pool.max_slots_by_job.get(request.job, by_job[request.job])
            quota = pool.quota_by_namespace.get(request.namespace) if request.namespace else pool.quota_slots
            assert quota is None or in_namespace[request.namespace] <= quota


@given(pools(), st.randoms())
def test_plan_does_not_depend_on_the_order_of_rows(pool: PoolSnapshot, rng: random.Random) -> None:
    def shuffled(items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(rng.sample(items, len(items)))

    other = PoolSnapshot(
        nodes=shuffled(pool.nodes or ()),
        held=shuffled(pool.held),
        pending=shuffled(pool.pending),
        max_slots_by_job=pool.max_slots_by_job,
        quota_slots=pool.quota_slots,
        quota_by_namespace=pool.quota_by_namespace,
        larger_priority_first=pool.larger_priority_first,
        fitting=pool.fitting,
    )
    assert plan(other) == plan(pool)


@given(pools())
def test_carrying_out_a_plan_leaves_nothing_that_it_could_have_started(pool: PoolSnapshot) -> None:
    decisions = plan(pool)
    starts = {d.allocation: d for d in decisions if isinstance(d, Start)}
    requests = {request.allocation: request for request in pool.pending}
    held = tuple(
        HeldAllocation(
            allocation=start.allocation,
            job=requests[start.allocation].job,
            namespace=requests[start.allocation].namespace,
            pods=tuple((place.node, place.slots) for place in start.placements),
        )
        for start in starts.values()
    )
    after = PoolSnapshot(
        nodes=pool.nodes,
        held=(*pool.held, *held),
        pending=tuple(request for request in pool.pending if request.allocation not in starts),
        max_slots_by_job=pool.max_slots_by_job,
        quota_slots=pool.quota_slots,
        quota_by_namespace=pool.quota_by_namespace,
        larger_priority_first=pool.larger_priority_first,
        fitting=pool.fitting,
    )
    assert not [decision for decision in plan(after) if isinstance(decision, Start)]


def test_large_pools_plan_in_seconds() -> None:
    """A coarse guard against quadratic work; the figures of docs/architecture.md 8 are measured in tests/bench."""
    nodes = tuple(NodeSlots(name=f"n{i:05}", slots=8, max_aux=100) for i in range(10_000))
    pending = tuple(
        PendingAllocation(
            allocation=f"a{i}",
            job=f"j{i % 1000}",
            pods=(4,) * (1 + i % 3),
            priority=42,
            submitted_at=START,
            requested_at=START + timedelta(seconds=i),
        )
        for i in range(30_000)
    )
    began = time.process_time()  # what others do on the machine does not count
    decisions = plan(PoolSnapshot(nodes=nodes, pending=pending))
    assert sum(isinstance(decision, Start) for decision in decisions) >= 10_000
    assert time.process_time() - began < 10
