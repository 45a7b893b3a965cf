"""Pools whose nodes differ in labels, taints and resources, for properties, and a slow count of what is on their
nodes."""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import strategies as st

from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.nodes.amounts import amounts
from services.scheduler.plan.nodes.requirements import PodRequirements, SlotResource
from services.scheduler.plan.nodes.shapes import NodeShape, ShapedNode
from services.scheduler.plan.nodes.taints import NodeTaint, Toleration
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, PoolSnapshot

GPU = SlotResource("nvidia.com/gpu")
TAINT = NodeTaint("team", "a")


@st.composite
def requirements(draw: st.DrawFn, slots: int) -> PodRequirements:
    asked = {"cpu": draw(st.sampled_from((0, 0, 1000, 3000))), "memory": draw(st.sampled_from((0, 0, 5)))}
    asked[GPU.name] = slots
    return PodRequirements(
        node_selector=draw(st.sampled_from(((), (), (("gpu", "a100"),), (("zone", "x"),)))),
        tolerations=draw(st.sampled_from(((), (Toleration("team", "Exists"),)))),
        requests=amounts(asked),
        slot=GPU if slots else None,
    )


@st.composite
def shapes(draw: st.DrawFn) -> NodeShape:
    cpu, pods = draw(st.sampled_from((2000, 4000, 8000))), draw(st.sampled_from((2, 4, 110)))
    counted = amounts({"cpu": cpu, "memory": 12, "pods": pods, GPU.name: 8})
    gpu, zone = draw(st.sampled_from(("a100", "v100"))), draw(st.sampled_from(("x", "y")))
    return NodeShape(
        labels=(("gpu", gpu), ("zone", zone)),
        taints=draw(st.sampled_from(((), (), (TAINT,)))),
        ready=draw(st.sampled_from((True, True, True, False))),
        allocatable=draw(st.sampled_from((None, counted, counted, counted))),
    )


@st.composite
def shaped(draw: st.DrawFn, pool: PoolSnapshot) -> PoolSnapshot:
    """``pool`` with what is known of its nodes and asked for by its requests beside slots."""
    nodes = tuple(
        msgspec.structs.replace(
            node,
            shaped=ShapedNode(
                name=node.name,
                shape=draw(shapes()),
                spare=draw(st.sampled_from(((), (("memory", 1),)))),
                foreign=draw(st.sampled_from(((), (("cpu", 500), ("pods", 1))))),
            ),
        )
        for node in pool.nodes or ()
    )
    held = [msgspec.structs.replace(one, needs=draw(requirements(one.pods[0][1]))) for one in pool.held]
    pending = [msgspec.structs.replace(one, needs=draw(requirements(one.pods[0]))) for one in pool.pending]
    return msgspec.structs.replace(pool, nodes=nodes, held=tuple(held), pending=tuple(pending))


def oversold(pool: PoolSnapshot, made: Plan) -> list[str]:
    """Each start that no node has enough for, and each on a node that its pods may not use."""
    found: list[str] = []
    requests = {one.allocation: one for one in pool.pending}
    nodes = {node.name: node.shaped for node in pool.nodes or () if node.shaped is not None}
    used: Counter[tuple[str, str]] = Counter()
    for held in pool.held:
        for node, _ in held.pods:
            _count(used, node, held)
    started: set[tuple[str, str]] = set()
    for start in made.starts:
        request = requests[start.allocation]
        for place in start.placements:
            _count(used, place.node, request)
            started |= {(place.node, name) for name, _ in _asked(request)}
            if not _may_use(request, nodes[place.node]):
                found.append(f"{start.allocation} on {place.node}")
    for name, resource in started:
        shaped_node = nodes[name]
        if shaped_node.shape.allocatable is None:
            continue
        has = Counter(dict(shaped_node.shape.allocatable)) + Counter(dict(shaped_node.spare))
        if used[name, resource] > has[resource] - dict(shaped_node.foreign).get(resource, 0):
            found.append(f"{resource} of {name}")
    return found


def _count(used: Counter[tuple[str, str]], node: str, one: HeldAllocation | PendingAllocation) -> None:
    for resource, amount in _asked(one):
        used[node, resource] += amount


def _asked(one: HeldAllocation | PendingAllocation) -> list[tuple[str, int]]:
    assert one.needs is not None
    return [*((name, amount) for name, amount in one.needs.requests if name != GPU.name), ("pods", 1)]


def _may_use(request: PendingAllocation, node: ShapedNode) -> bool:
    assert request.needs is not None
    labels = dict(node.shape.labels)
    tolerated = bool(request.needs.tolerations) or TAINT not in node.shape.taints
    selected = all(labels.get(key) == value for key, value in request.needs.node_selector)
    return node.shape.ready and tolerated and selected
