"""What holds for moves, whatever is scattered: none in vain, no more than allowed, and nothing left to move after a
plan."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.lifecycle import queued_again
from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolPolicy, PoolSnapshot
from tests.scenarios.queue.virtual_queue import VirtualQueue
from tests.unit.scheduler.plan.test_plan_properties import NODES, NOW, START, carried_out

SLOTS = 4


@st.composite
def scattered(draw: st.DrawFn) -> PoolSnapshot:
    """Nodes of which each is half full or so, and requests that are larger than what any has left."""
    free = dict.fromkeys(NODES, SLOTS)
    held: list[HeldAllocation] = []
    for node in NODES:
        for slots in draw(st.lists(st.sampled_from((1, 1, 2)), min_size=1, max_size=2)):
            if free[node] < slots:
                continue
            others = [other for other in NODES if other != node and free[other] >= slots + 1]
            gang = [node, others[0]] if others and draw(st.integers(0, 5)) == 0 else [node]
            for each in gang:
                free[each] -= slots
            held.append(
                HeldAllocation(
                    allocation=f"h{len(held)}",
                    job=f"j{len(held)}",
                    pods=tuple((each, slots) for each in gang),
                    priority=draw(st.sampled_from((10, 42))),
                    submitted_at=START,
                    preemptible=draw(st.sampled_from((True, True, False))),
                    movable=draw(st.sampled_from((True, True, True, False))),
                    leaving=draw(st.integers(0, 9)) == 0,
                    blocked_nodes=draw(st.sampled_from((frozenset(), frozenset(), frozenset(NODES[:1])))),
                    started_at=NOW - timedelta(seconds=draw(st.sampled_from((5, 600, 6000)))),
                    saved_at=draw(st.sampled_from((None, NOW))),
                )
            )
    pending = tuple(
        PendingAllocation(
            allocation=f"p{number}",
            job=f"p{number}",
            pods=draw(st.sampled_from(((4,), (4,), (3,), (4, 4), (2, 2, 2)))),
            priority=draw(st.sampled_from((10, 42, 90))),
            submitted_at=START + timedelta(seconds=number),
            requested_at=START,
        )
        for number in range(draw(st.integers(1, 4)))
    )
    policy = PoolPolicy(
        queue=draw(st.sampled_from(("priority", "fair_share", "fifo", "round_robin"))),
        preemption=draw(st.booleans()),
        fitting=draw(st.sampled_from(("best", "worst"))),
        min_runtime=timedelta(seconds=60),
    )
    return PoolSnapshot(
        nodes=tuple(NodeSlots(name=node, slots=SLOTS, max_aux=0) for node in NODES),
        held=tuple(held),
        pending=pending,
        moves_left=draw(st.sampled_from((1, 2, 5))),
        policy=policy,
        now=NOW,
    )


@given(scattered())
def test_nothing_is_moved_in_vain(pool: PoolSnapshot) -> None:
    """Who was moved starts again where it was moved to, and who it was moved for where it has been."""
    made = plan(pool)
    moved = {move.allocation: move for move in made.moved}
    event(f"moved {len(moved)}")
    assert len(moved) == len(made.moved) <= pool.moves_left
    assert not moved.keys() & {one.allocation for one in made.preempted}
    held = {one.allocation: one for one in pool.held}
    for name, move in moved.items():
        one = held[name]
        assert one.movable
        assert one.started_at <= NOW - timedelta(seconds=60)
        assert not {place.node for place in move.placements} & one.blocked_nodes
        assert sorted((place.node, place.slots) for place in move.placements) != sorted(one.pods)
    started = _started_when_left(pool, made)
    places = {one.allocation: one.placements for one in made.nominated}
    for name, move in moved.items():
        assert started[name] == move.placements
        assert started[move.makes_room_for] == places[move.makes_room_for]


def _started_when_left(pool: PoolSnapshot, made: Plan) -> dict[str, object]:
    """What the plan after ``made`` starts where: those have left that were asked, and come back that were moved."""
    after = carried_out(pool, made)
    placements = {move.allocation: move.placements for move in made.moved}
    returned = [
        msgspec.structs.replace(
            queued_again(one, (slots for _, slots in one.pods)), nominated=placements[one.allocation], moved=True
        )
        for one in after.held
        if one.allocation in placements
    ]
    stay = tuple(one for one in after.held if not one.leaving)
    after = msgspec.structs.replace(after, held=stay, pending=(*after.pending, *returned), moving=())
    last = plan(after)
    used = Counter[str]()
    for one in stay:
        for node, slots in one.pods:
            used[node] += slots
    for start in last.starts:
        for place in start.placements:
            used[place.node] += place.slots
    assert all(slots <= SLOTS for slots in used.values()), "nothing is oversold"
    return {start.allocation: start.placements for start in last.starts}


@given(scattered(), st.randoms())
def test_a_plan_leaves_nothing_to_move_and_does_not_depend_on_order(pool: PoolSnapshot, rng: random.Random) -> None:
    made = plan(pool)
    mixed = msgspec.structs.replace(
        pool,
        nodes=tuple(rng.sample(pool.nodes or (), len(pool.nodes or ()))),
        held=tuple(rng.sample(pool.held, len(pool.held))),
        pending=tuple(rng.sample(pool.pending, len(pool.pending))),
    )
    assert plan(mixed) == made
    again = plan(carried_out(pool, made))
    assert not list(again.starts)
    moved_for = {one.makes_room_for for one in made.moved}
    assert not {one.allocation for one in again.nominated} & moved_for, "places are not given back"
    assert not {one.makes_room_for for one in again.moved} & moved_for, "nor made twice"


def test_some_are_moved_for_all_kinds_of_requests() -> None:
    """The properties above would be true of plans that move nothing."""
    found: Counter[int] = Counter()

    @settings(max_examples=200, database=None, derandomize=True)
    @given(scattered())
    def count(pool: PoolSnapshot) -> None:
        found[len(plan(pool).moved)] += 1

    count()
    assert found[1] > 10
    assert found[2] > 3


def test_over_hours_no_more_are_moved_than_allowed_and_all_go_on() -> None:
    queue = VirtualQueue(
        PoolPolicy(fitting="worst"), nodes=dict.fromkeys(NODES, SLOTS), task_minutes=45, moves_per_hour=3
    )
    rng = random.Random(7)
    for minute in range(8 * 60):
        if minute % 4 == 0 and len(queue.pending) < 8:
            queue.submit(f"j{minute}", rng.choice(((1,), (1,), (2,), (4,))))
        made = queue.step()
        starts = {start.allocation: start.placements for start in made.starts}
        assert {name: starts.get(name) for name in queue.came_back} == queue.came_back
        lately = sum(at > queue.now - timedelta(hours=1) for at in queue.moved_at)
        assert lately <= 3
    assert len(queue.moved_at) > 3
