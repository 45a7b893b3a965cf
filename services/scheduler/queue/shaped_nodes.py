"""Nodes of a reported capacity, as plans ask them what pods they can run (pure)."""

from __future__ import annotations

from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape
from services.scheduler.plan.nodes.amounts import amounts
from services.scheduler.plan.nodes.shapes import UNKNOWN, NodeShape, ShapedNode, ShapeTable
from services.scheduler.plan.nodes.taints import NodeTaint


def shaped_nodes(capacity: PoolCapacity, table: ShapeTable) -> tuple[ShapedNode, ...]:
    """The nodes of a pool in the order of the message, with shapes that ``table`` interns.

    A node that refers to no shape of the message, as those of launchers of the release before, has the shape
    ``UNKNOWN``: nothing is held against it.
    """
    shapes = [table.intern(_shape(each)) for each in capacity.shapes]
    return tuple(_node(node, capacity.shapes, shapes) for node in capacity.nodes)


def _node(node: NodeCapacity, reported: tuple[ReportedShape, ...], shapes: list[NodeShape]) -> ShapedNode:
    if node.shape is None or not 0 <= node.shape < len(shapes):
        return ShapedNode(name=node.name, shape=UNKNOWN)
    named = dict.fromkeys(reported[node.shape].name_labels, node.name)
    return ShapedNode(
        name=node.name,
        shape=shapes[node.shape],
        labels=tuple(sorted((named | node.labels).items())),
        spare=amounts(node.spare),
        foreign=amounts(node.foreign),
    )


def _shape(shape: ReportedShape) -> NodeShape:
    return NodeShape(
        labels=tuple(sorted(shape.labels.items())),
        taints=tuple(NodeTaint(each.key, each.value, each.effect) for each in shape.taints),
        unschedulable=shape.unschedulable,
        ready=shape.ready,
        bad=shape.bad,
        allocatable=None if shape.allocatable is None else amounts(shape.allocatable),
        offers_claims_only=shape.claims_only,
    )
