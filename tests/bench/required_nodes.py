"""What requests and nodes of the planner's benchmark are beside slots: six shapes of nodes, four kinds of pods."""

from __future__ import annotations

import random
from typing import Final

import msgspec

from services.scheduler.plan.nodes.amounts import amounts
from services.scheduler.plan.nodes.requirements import PodRequirements, SlotResource
from services.scheduler.plan.nodes.shapes import NodeShape, ShapedNode
from services.scheduler.plan.snapshot import PoolSnapshot

GIB: Final = 1 << 30
GPU: Final = SlotResource("nvidia.com/gpu")
KINDS: Final[tuple[tuple[tuple[tuple[str, str], ...], dict[str, int]], ...]] = (
    ((), {}),
    ((("gpu", "a100"),), {}),
    ((("zone", "a"),), {"cpu": 8000}),
    ((), {"memory": 64 * GIB}),
)


def with_requirements(pool: PoolSnapshot) -> PoolSnapshot:
    """``pool`` as Kubernetes has it: each node with labels and amounts, each pod with what it requires."""
    rng = random.Random(3)
    has = amounts({"cpu": 64_000, "memory": 512 * GIB, GPU.name: 8, "pods": 110})
    shapes = [
        NodeShape(labels=(("gpu", gpu), ("zone", zone)), allocatable=has) for gpu in ("a100", "v100") for zone in "abc"
    ]
    nodes = tuple(
        msgspec.structs.replace(
            node,
            shaped=ShapedNode(
                name=node.name,
                shape=shapes[number % len(shapes)],
                labels=(("kubernetes.io/hostname", node.name),),
                spare=amounts({"memory": number * 1000}),
                foreign=amounts({"cpu": 500, "pods": 6}),
            ),
        )
        for number, node in enumerate(pool.nodes or ())
    )
    known: dict[tuple[int, int], PodRequirements] = {}
    held = tuple(
        msgspec.structs.replace(one, needs=_needs(known, one.pods[0][1], rng.choice((0, 0, 2)))) for one in pool.held
    )
    pending = tuple(
        msgspec.structs.replace(one, needs=_needs(known, one.pods[0], rng.choice((0, 0, 0, 1, 2, 3))))
        for one in pool.pending
    )
    return msgspec.structs.replace(pool, nodes=nodes, held=held, pending=pending)


def _needs(known: dict[tuple[int, int], PodRequirements], slots: int, kind: int) -> PodRequirements:
    """Equal ones are one object, as the scheduler has them."""
    selector, more = KINDS[kind]
    requests = amounts({"cpu": 200, "memory": GIB, GPU.name: slots} | more)
    made = PodRequirements(node_selector=selector, requests=requests, slot=GPU if slots else None)
    return known.setdefault((slots, kind), made)
