"""What holds for any pool that grows, for whomever it does: plans stay sound, what came is for one request alone, and
what was asked for is enough."""

from __future__ import annotations

import random
from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.plan.decisions import EndGrowth, Grow
from services.scheduler.plan.nodes.shapes import UNKNOWN, ShapedNode
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import Growing, Growth, NodeSlots, Placement, PoolSnapshot
from tests.unit.scheduler.plan.shaped_pools import oversold, shaped
from tests.unit.scheduler.plan.test_plan_properties import NODES, NOW, carried_out, check_sound, pools

DEADLINE = timedelta(minutes=15)


def template() -> NodeSlots:
    return NodeSlots(name="", slots=8, max_aux=3)


@st.composite
def growing(draw: st.DrawFn, pool: PoolSnapshot) -> PoolSnapshot:
    now: Growing | None = None
    grows = draw(st.booleans())
    if pool.pending and grows:
        request = draw(st.sampled_from(pool.pending))
        known = draw(st.frozensets(st.sampled_from(NODES)))
        usable = sorted(known - request.blocked_nodes)
        held = draw(st.lists(st.sampled_from(usable), max_size=len(request.pods) - 1)) if usable else []
        now = Growing(
            allocation=request.allocation,
            pods=len(request.pods) - len(held),
            nodes=1,
            node_slots=8,
            gives_up_at=NOW + timedelta(seconds=draw(st.sampled_from((0, 60)))),
            known_nodes=known,
            places=tuple(Placement(node, request.pods[0]) for node in held),
        )
    growth = Growth(
        deadline=DEADLINE,
        template=draw(st.none() | st.just(template())),
        max_nodes=draw(st.none() | st.integers(0, 6)),
        now=now,
        rests_until=draw(st.dictionaries(st.sampled_from(("p0", "p1")), st.sampled_from((NOW, NOW + DEADLINE)))),
    )
    return msgspec.structs.replace(pool, growth=growth)


def growing_pools() -> st.SearchStrategy[PoolSnapshot]:
    return st.one_of(pools(), pools().flatmap(shaped)).flatmap(growing)


@given(growing_pools())
def test_plans_of_pools_that_grow_are_sound(pool: PoolSnapshot) -> None:
    made = plan(pool)
    check_sound(pool, made)
    assert len({decision.allocation for decision in made.decisions}) == len(made.decisions)


@given(pools().flatmap(shaped).flatmap(growing))
def test_no_node_is_oversold_in_anything(pool: PoolSnapshot) -> None:
    assert oversold(pool, plan(pool)) == []


@given(growing_pools(), st.randoms())
def test_growth_does_not_depend_on_the_order_of_rows(pool: PoolSnapshot, rng: random.Random) -> None:
    nodes, pending = list(pool.nodes or ()), list(pool.pending)
    rng.shuffle(nodes)
    rng.shuffle(pending)
    assert plan(msgspec.structs.replace(pool, nodes=tuple(nodes), pending=tuple(pending))) == plan(pool)


@given(growing_pools())
def test_what_came_is_for_one_request_alone(pool: PoolSnapshot) -> None:
    assert pool.growth is not None
    now, made = pool.growth.now, plan(pool)
    if now is None or isinstance(made.growth, EndGrowth):
        return
    came = {node.name for node in pool.nodes or ()} - now.known_nodes
    assert not [place for start in made.starts for place in start.placements if place.node in came]
    assert not [place for one in made.nominated for place in one.placements if place.node in came]
    [reason] = [wait.reason for wait in made.waits if wait.allocation == now.allocation]
    # A quota that placeholders use up for a moment ends nothing, and is what is said then.
    has_quota = pool.quota_slots is not None or bool(pool.quota_by_namespace)
    assert reason is WaitReason.POOL_GROWING or (has_quota and reason is WaitReason.POOL_QUOTA)


@given(growing_pools())
def test_a_request_starts_when_the_nodes_come_that_were_asked_for(pool: PoolSnapshot) -> None:
    assert pool.growth is not None
    made = plan(pool)
    if not isinstance(made.growth, Grow) or pool.growth.template is None:
        return
    asked = made.growth
    assert pool.growth.max_nodes is None or len(asked.known_nodes) + asked.nodes <= pool.growth.max_nodes
    assert asked.allocation not in pool.growth.rests_until or pool.growth.rests_until[asked.allocation] <= pool.now
    now = Growing(
        allocation=asked.allocation,
        pods=asked.pods,
        nodes=asked.nodes,
        node_slots=asked.node_slots,
        gives_up_at=asked.gives_up_at,
        known_nodes=asked.known_nodes,
        places=asked.places,
    )
    after = carried_out(pool, made)
    waits = plan(msgspec.structs.replace(after, growth=msgspec.structs.replace(pool.growth, now=now)))
    assert not any(start.allocation == asked.allocation for start in waits.starts)
    some = next((node.shaped for node in pool.nodes or () if node.shaped is not None), None)
    new = tuple(_new_node(f"new{number}", like=some) for number in range(asked.nodes))
    grown = msgspec.structs.replace(
        after, nodes=(*(after.nodes or ()), *new), growth=msgspec.structs.replace(pool.growth, now=now)
    )
    starts = {start.allocation: start for start in plan(grown).starts}
    assert asked.allocation in starts
    assert {place.node for place in asked.places} <= {place.node for place in starts[asked.allocation].placements}
    assert plan(grown).growth == EndGrowth(asked.allocation, gave_up=False)


def _new_node(name: str, *, like: ShapedNode | None) -> NodeSlots:
    """A node of the template; it tells nothing of itself but slots, or has enough of everything."""
    if like is None:
        return msgspec.structs.replace(template(), name=name)
    return msgspec.structs.replace(template(), name=name, shaped=ShapedNode(name=name, shape=UNKNOWN))
