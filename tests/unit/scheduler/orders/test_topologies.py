"""What configurations and pools say of the topology, and where nodes are."""

from __future__ import annotations

import pytest

from libs.cluster.config import TopologyConfig, TopologyDefault
from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape
from services.scheduler.orders.topologies import domains_of_nodes, topology_of
from services.scheduler.plan.nodes.shapes import ShapeTable
from services.scheduler.plan.topology.levels import TopologyRequest
from services.scheduler.queue.shaped_nodes import shaped_nodes

HOST = "kubernetes.io/hostname"
PLAIN = TopologyConfig(levels=("zone", "rack"))
PREFERS = TopologyConfig(levels=("zone", "rack"), default=TopologyDefault(preferred="rack"))
REQUIRES = TopologyConfig(levels=("zone", "rack"), default=TopologyDefault(required="zone"))
IN_RACK = TopologyRequest("rack", required=True)


@pytest.mark.parametrize(
    ("said", "pool", "expected"),
    [
        (None, None, None),
        (None, PLAIN, None),
        ({}, PREFERS, TopologyRequest("rack", required=False)),
        (None, REQUIRES, TopologyRequest("zone", required=True)),
        ({"required": "rack"}, PREFERS, IN_RACK),
        ({"required": "rack"}, None, IN_RACK),
        ({"preferred": "rack"}, REQUIRES, TopologyRequest("rack", required=False)),
    ],
)
def test_who_says_nothing_asks_for_what_the_pool_does(
    said: dict[str, str] | None, pool: TopologyConfig | None, expected: TopologyRequest | None
) -> None:
    assert topology_of(said, pool) == expected


def test_nodes_are_where_their_labels_say() -> None:
    """Whether a label is of the shape, of the node, or has the node's name for its value."""
    capacity = PoolCapacity(
        pool="default",
        backend="kubernetes",
        nodes=(NodeCapacity(name="a", shape=0, labels={"rack": "r"}), NodeCapacity(name="b")),
        shapes=(ReportedShape(labels={"zone": "z"}, name_labels=(HOST,)),),
    )
    nodes = {node.name: node for node in shaped_nodes(capacity, ShapeTable())}
    assert domains_of_nodes(nodes, ("zone", "rack", HOST)) == {"a": ("z", "r", "a"), "b": ("", "", "")}
    assert domains_of_nodes(nodes, ()) == {}
