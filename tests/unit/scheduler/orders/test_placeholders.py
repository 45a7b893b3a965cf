"""What the launcher is told of pods is what the plan knows of them."""

from __future__ import annotations

from datetime import UTC, datetime

from services.scheduler.orders.placeholders import placeholder_order
from services.scheduler.orders.pod_requirements import pod_requirements
from services.scheduler.plan.decisions import Grow
from services.scheduler.plan.nodes.requirements import SlotResource

GROW = Grow(
    allocation="1.a.1",
    pods=2,
    nodes=2,
    node_slots=8,
    gives_up_at=datetime(2030, 1, 1, tzinfo=UTC),
    known_nodes=frozenset({"b", "a"}),
)
TERM = {
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}, {"key": "gpu", "operator": "Exists"}],
    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}],
}
POD = {
    "spec": {
        "nodeSelector": {"gpu": "a100"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}},
        "tolerations": [{"key": "team", "value": "x", "effect": "NoSchedule"}],
        "containers": [{"name": "determined-container", "resources": {"requests": {"cpu": "1500m"}}}],
    }
}


def test_the_order_has_all_that_decides_where_a_pod_may_run() -> None:
    order = placeholder_order("gpus", GROW, pod_requirements(POD, slots=8, slot=SlotResource("nvidia.com/gpu")))
    assert (order.pool, order.allocation, order.pods, order.known_nodes) == ("gpus", "1.a.1", 2, ("a", "b"))
    assert order.requests == {"cpu": 1500, "nvidia.com/gpu": 8}
    assert order.node_selector == {"gpu": "a100"}
    assert order.affinity_terms == (TERM,)
    assert {"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"} in order.tolerations
    assert order.gives_up_at == GROW.gives_up_at


def test_of_pods_of_which_nothing_is_known_it_has_nothing() -> None:
    order = placeholder_order("gpus", GROW, None)
    assert (order.requests, order.affinity_terms, order.tolerations) == ({}, None, ())
