"""What holds for any pool under any policy: no node oversold, no gang split, nobody over a limit, nobody asked to leave
in vain, the same plan for shuffled input, and nothing left to do after a plan."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from libs.job_rank import MICROSECOND, position_at
from services.scheduler.plan.decisions import Plan, Start
from services.scheduler.plan.nodes.eligible import EligibilityMemo
from services.scheduler.plan.ordering.ranking import ranking
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.remembered import remembered
from services.scheduler.plan.snapshot import (
    HeldAllocation,
    HourLimit,
    NodeSlots,
    PendingAllocation,
    PoolPolicy,
    PoolSnapshot,
    SlotLimit,
)
from tests.unit.scheduler.plan.shaped_pools import oversold, shaped
from tests.unit.scheduler.plan.topology_pools import is_in_one_domain, placed

T = TypeVar("T")
START = datetime(2030, 1, 1, tzinfo=UTC)
NOW = START + timedelta(hours=1)
NODES = ("a", "b", "c", "d")
OWNERS = ("", "x", "y", "team/x", "team/y")
UNDER = ((), ("ann",), ("lab",), ("ann", "lab"), ("bob", "lab"))


def moments() -> st.SearchStrategy[datetime]:
    return st.integers(0, 2).map(lambda seconds: START + timedelta(seconds=seconds))


def positions() -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(0, 4).map(lambda halves: position_at(START) + halves * 500_000 * MICROSECOND)


@st.composite
def policies(draw: st.DrawFn) -> PoolPolicy:
    return PoolPolicy(
        queue=draw(st.sampled_from(("priority", "priority", "fair_share", "fifo", "round_robin"))),
        preemption=draw(st.booleans()),
        fitting=draw(st.sampled_from(("best", "worst"))),
        larger_priority_first=draw(st.booleans()),
        min_runtime=timedelta(seconds=draw(st.sampled_from((0, 60)))),
        max_overtakes=draw(st.sampled_from((0, 2, 100))),
    )


@st.composite
def held_pods(draw: st.DrawFn) -> tuple[tuple[str, int], ...]:
    slots = draw(st.integers(0, 4))
    return tuple((node, slots) for node in draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=2)))


@st.composite
def slot_limits(draw: st.DrawFn) -> SlotLimit:
    elsewhere = draw(st.integers(0, 3))
    return SlotLimit(
        holder="user ann",
        most=draw(st.integers(0, 8)),
        elsewhere=elsewhere,
        leaving=draw(st.integers(0, elsewhere)),
        preempts=draw(st.booleans()),
    )


@st.composite
def hour_limits(draw: st.DrawFn) -> HourLimit:
    return HourLimit(
        holder="group lab",
        period="week",
        most_s=draw(st.integers(0, 40)) * 60.0,
        spent_s=draw(st.integers(0, 20)) * 60.0,
        rest_s=draw(st.integers(0, 20)) * 60.0,
        next_at=NOW + timedelta(days=2),
        preempts=draw(st.booleans()),
    )


@st.composite
def wanted_pods(draw: st.DrawFn) -> dict[str, Any]:
    """Some to be divided into pods by the plan."""
    if draw(st.sampled_from((False, False, True))):
        return {"pods": (1,) * draw(st.integers(2, 9)), "most_per_pod": draw(st.integers(1, 4))}
    return {"pods": (draw(st.integers(0, 4)),) * draw(st.integers(1, 3))}


@st.composite
def pools(draw: st.DrawFn) -> PoolSnapshot:
    nodes = {
        name: NodeSlots(
            name=name,
            slots=draw(st.integers(0, 8)),
            lent=draw(st.sampled_from((0, 0, 1, 4))),
            max_aux=draw(st.integers(0, 3)),
            available=draw(st.booleans()) or draw(st.booleans()),
        )
        for name in draw(st.sets(st.sampled_from(NODES)))
    }
    jobs = st.sampled_from(("j1", "j2", "j3"))
    namespaces = st.sampled_from(("", "n1", "n2"))
    owners = st.sampled_from(OWNERS)
    held = tuple(
        HeldAllocation(
            allocation=f"h{i}",
            job=draw(jobs),
            pods=draw(held_pods()),
            namespace=draw(namespaces),
            limits=draw(st.sampled_from(UNDER)),
            share=draw(owners),
            priority=draw(st.sampled_from((10, 42, 99))),
            submitted_at=draw(moments()),
            requested_at=draw(moments()),
            position=draw(positions()),
            preemptible=draw(st.booleans()),
            movable=draw(st.booleans()),
            blocked_nodes=draw(st.frozensets(st.sampled_from(NODES), max_size=1)),
            leaving=draw(st.sampled_from((False, False, True))),
            started_at=NOW - timedelta(seconds=draw(st.sampled_from((5, 600)))),
            ends_at=draw(st.none() | st.just(NOW + timedelta(minutes=5))),
        )
        for i in range(draw(st.integers(0, 6)))
    )
    pending = tuple(
        PendingAllocation(
            allocation=f"p{i}",
            job=draw(jobs),
            **draw(wanted_pods()),
            priority=draw(st.sampled_from((10, 42, 99))),
            submitted_at=draw(moments()),
            requested_at=draw(moments()),
            position=draw(positions()),
            blocked_nodes=draw(st.frozensets(st.sampled_from(NODES), max_size=2)),
            namespace=draw(namespaces),
            limits=draw(st.sampled_from(UNDER)),
            share=draw(owners),
            preemptible=draw(st.booleans()),
            runs_for=draw(st.none() | st.sampled_from((timedelta(minutes=1), timedelta(minutes=10)))),
            expected=draw(st.none() | st.sampled_from((timedelta(minutes=2), timedelta(days=2)))),
            blocked_at=draw(st.none() | st.sampled_from((NOW, NOW - timedelta(hours=1), NOW - timedelta(hours=9)))),
            overtaken=draw(st.sampled_from((0, 0, 1))),
            preempted=draw(st.sampled_from((0, 0, 1, 7))),
        )
        for i in range(draw(st.integers(0, 12)))
    )
    return PoolSnapshot(
        nodes=tuple(nodes.values()),
        held=held,
        pending=pending,
        max_slots_by_job=draw(st.dictionaries(jobs, st.integers(0, 6))),
        quota_slots=draw(st.none() | st.integers(0, 12)),
        quota_by_namespace=draw(st.dictionaries(st.sampled_from(("n1", "n2")), st.integers(0, 6))),
        limits=draw(st.dictionaries(st.sampled_from(("ann", "bob", "lab")), slot_limits() | hour_limits())),
        weights=draw(st.dictionaries(st.sampled_from(("x", "y", "team", "j1")), st.sampled_from((0.0, 0.5, 2.0)))),
        past_use=draw(st.dictionaries(st.sampled_from(("x", "y", "team", "team/x")), st.floats(0.0, 9.0))),
        moves_left=draw(st.sampled_from((0, 1, 3))),
        policy=draw(policies()),
        now=NOW,
    )


def charges(pool: PoolSnapshot, made: Plan) -> Counter[str]:
    """Slot-seconds that what starts may use at most, by limit."""
    requests = {request.allocation: request for request in pool.pending}
    found: Counter[str] = Counter()
    for start in made.starts:
        request = requests[start.allocation]
        if request.runs_for is not None:
            charge = int(request.slots * request.runs_for.total_seconds())
            found.update(dict.fromkeys(request.limits, charge))
    return found


def carried_out(pool: PoolSnapshot, made: Plan) -> PoolSnapshot:
    """The pool after ``made``, when nobody has left yet."""
    starts = {start.allocation: start for start in made.starts}
    leaving = {one.allocation for one in made.preempted} | {one.allocation for one in made.moved}
    charged = charges(pool, made)
    limits = {
        key: msgspec.structs.replace(limit, rest_s=limit.rest_s + charged[key])
        if isinstance(limit, HourLimit)
        else limit
        for key, limit in pool.limits.items()
    }
    after = {request.allocation: request for request in remembered(made, pool.pending)}
    held = [msgspec.structs.replace(one, leaving=one.leaving or one.allocation in leaving) for one in pool.held]
    pending = []
    for request in pool.pending:
        if (start := starts.get(request.allocation)) is not None:
            held.append(
                HeldAllocation(
                    allocation=request.allocation,
                    job=request.job,
                    namespace=request.namespace,
                    limits=request.limits,
                    share=request.share,
                    priority=request.priority,
                    submitted_at=request.submitted_at,
                    requested_at=request.requested_at,
                    position=request.position,
                    preemptible=request.preemptible,
                    started_at=pool.now,
                    pods=tuple((place.node, place.slots) for place in start.placements),
                    ends_at=None if request.runs_for is None else pool.now + request.runs_for,
                    needs=request.needs,
                    topology=request.topology,
                    most_per_pod=request.most_per_pod,
                )
            )
            continue
        pending.append(after.get(request.allocation, request))
    places = {one.allocation: tuple((place.node, place.slots) for place in one.placements) for one in made.moved}
    return msgspec.structs.replace(
        pool,
        held=tuple(held),
        pending=tuple(pending),
        moving=tuple(
            msgspec.structs.replace(one, pods=places[one.allocation]) for one in pool.held if one.allocation in places
        ),
        moves_left=pool.moves_left - len(made.moved),
        limits=limits,
    )


def whole(request: PendingAllocation, start: Start) -> bool:
    """Whether it has all of its slots, in pods that it may have, the largest first."""
    sizes = tuple(place.slots for place in start.placements)
    if not request.most_per_pod:
        return sizes == request.pods
    is_sorted = sizes == tuple(sorted(sizes, reverse=True))
    return sum(sizes) == request.slots and is_sorted and 0 < sizes[-1] <= sizes[0] <= request.most_per_pod


def any_pools() -> st.SearchStrategy[PoolSnapshot]:
    """Some with nodes of which only the slots are known, some with racks."""
    return st.one_of(pools(), pools().flatmap(shaped), pools().flatmap(placed), pools().flatmap(shaped).flatmap(placed))


@given(any_pools())
def test_plan_is_sound(pool: PoolSnapshot) -> None:
    check_sound(pool, plan(pool))


def check_sound(pool: PoolSnapshot, made: Plan) -> None:
    assert sorted(decision.allocation for decision in made.decisions) == sorted(r.allocation for r in pool.pending)
    requests = {request.allocation: request for request in pool.pending}
    nodes = {node.name: node for node in pool.nodes or ()}
    slots: Counter[str] = Counter()
    aux: Counter[str] = Counter()
    by_job: Counter[str] = Counter()
    in_namespace: Counter[str] = Counter()
    slots_of = {key: limit for key, limit in pool.limits.items() if isinstance(limit, SlotLimit)}
    shared = Counter({key: limit.elsewhere for key, limit in slots_of.items()})
    for held in pool.held:
        by_job[held.job] += held.slots
        for node, count in held.pods:
            slots[node] += count
            aux[node] += not count
        in_namespace[held.namespace] += held.slots
        shared.update(dict.fromkeys(held.limits, held.slots))
    started_on: set[str] = set()
    started = list(made.starts)
    for start in started:
        request = requests[start.allocation]
        assert whole(request, start), "whole gangs only"
        by_job[request.job] += request.slots
        in_namespace[request.namespace] += request.slots
        shared.update(dict.fromkeys(request.limits, request.slots))
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
            assert all(shared[key] <= slots_of[key].most for key in request.limits if key in slots_of)
    charged = charges(pool, made)
    for key, limit in pool.limits.items():
        if isinstance(limit, HourLimit) and charged[key]:
            assert limit.spent_s + limit.rest_s + charged[key] <= limit.most_s


@given(pools().flatmap(shaped))
def test_no_node_is_oversold_in_anything(pool: PoolSnapshot) -> None:
    """And every start is one that Kubernetes would allow."""
    assert oversold(pool, plan(pool)) == []


@given(pools().flatmap(placed) | pools().flatmap(shaped).flatmap(placed))
def test_a_gang_that_requires_a_domain_never_leaves_it(pool: PoolSnapshot) -> None:
    """Neither where it starts, nor where others are asked to leave for it."""
    made = plan(pool)
    requests = {request.allocation: request for request in pool.pending}
    places = [(one.allocation, one.placements) for one in made.starts]
    places += [(one.allocation, one.placements) for one in made.nominated]
    for name, chosen in places:
        topology = requests[name].topology
        if topology is not None and topology.required and len(chosen) > 1:
            assert is_in_one_domain(pool, {place.node for place in chosen}, topology.level)


@given(pools().flatmap(placed))
def test_a_preference_is_no_reason_to_wait(pool: PoolSnapshot) -> None:
    """Whoever is alone in the queue starts with it as it would without."""
    preferring = [one for one in pool.pending if one.topology is not None and not one.topology.required]
    assume(preferring)
    first = preferring[0]
    alone = msgspec.structs.replace(pool, pending=(first,))
    without = msgspec.structs.replace(pool, pending=(msgspec.structs.replace(first, topology=None),))
    assert bool(list(plan(alone).starts)) == bool(list(plan(without).starts))


@given(pools().flatmap(shaped))
def test_plan_does_not_depend_on_what_was_kept_of_others(pool: PoolSnapshot) -> None:
    memo = EligibilityMemo()
    first = plan(pool, memo)
    other = msgspec.structs.replace(pool, nodes=tuple(pool.nodes or ())[1:])
    assert plan(other, memo) == plan(other)
    assert plan(pool, memo) == first == plan(pool)


@given(any_pools(), st.randoms())
def test_plan_does_not_depend_on_the_order_of_rows(pool: PoolSnapshot, rng: random.Random) -> None:
    def shuffled(items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(rng.sample(items, len(items)))

    other = msgspec.structs.replace(
        pool, nodes=shuffled(pool.nodes or ()), held=shuffled(pool.held), pending=shuffled(pool.pending)
    )
    assert plan(other) == plan(pool)


@given(any_pools())
def test_a_plan_applied_twice_changes_nothing(pool: PoolSnapshot) -> None:
    """The next plan of the same moment starts nobody, asks nobody to leave, and gives no place back."""
    assert not has_effect(plan(carried_out(pool, plan(pool))))


def has_effect(made: Plan) -> bool:
    """Whether it does more than to say why others wait."""
    return bool(list(made.starts) or made.preempted or made.nominated or made.moved)


@given(any_pools())
def test_nobody_leaves_in_vain(pool: PoolSnapshot) -> None:
    """Without each that is asked, the one for whom it is asked would not have its places; and it gets them."""
    made = plan(pool)
    held = {one.allocation: one for one in pool.held}
    places = {one.allocation: one.placements for one in made.nominated}
    places |= {start.allocation: start.placements for start in made.starts}
    for one in made.preempted:
        victim = held[one.allocation]
        assert victim.preemptible
        assert not victim.leaving
        if one.makes_room_for:
            nodes = {place.node for place in places[one.makes_room_for]}
            assert nodes & {node for node, _ in victim.pods}
    gone = {one.allocation for one in made.preempted} | {one.allocation for one in made.moved}
    gone |= {one.allocation for one in pool.held if one.leaving}
    after = carried_out(pool, made)
    after = msgspec.structs.replace(after, held=tuple(one for one in after.held if one.allocation not in gone))
    started = {start.allocation: start.placements for start in (*made.starts, *plan(after).starts)}
    for name, given_places in places.items():
        if given_places:
            assert started[name] == given_places


@given(pools())
def test_no_inversion_of_priorities(pool: PoolSnapshot) -> None:
    """What starts without being out of the way takes no place that something of a better priority waits for."""
    policy = PoolPolicy(queue="priority", larger_priority_first=pool.policy.larger_priority_first)
    pool = msgspec.structs.replace(
        pool, policy=policy, max_slots_by_job={}, quota_slots=None, quota_by_namespace={}, limits={}
    )
    made = plan(pool)
    rank = ranking(policy)
    requests = {request.allocation: request for request in pool.pending}
    for wait in made.waits:
        waiting = requests[wait.allocation]
        if wait.reason is not WaitReason.NO_ROOM or len(waiting.pods) > 1:
            continue
        for start in made.starts:
            started = requests[start.allocation]
            if rank(started)[0] <= rank(waiting)[0] or started.runs_for is not None:
                continue
            for place in start.placements:
                assert place.slots < waiting.pods[0] or place.node in waiting.blocked_nodes


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
    made = plan(PoolSnapshot(nodes=nodes, pending=pending))
    assert sum(1 for _ in made.starts) >= 10_000
    assert time.process_time() - began < 10
