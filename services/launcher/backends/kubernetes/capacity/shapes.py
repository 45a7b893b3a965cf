"""Finds the shapes of nodes: what pods may ask for, said once for all nodes that have it in common.

Nodes that are alike differ in a few labels, and by some KiB in memory and storage. A label with many values is said of
each node, and so is what is left when memory and storage are rounded down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from libs.events.node_shapes import ReportedShape, ReportedTaint
from libs.podspec.quantities import units
from services.launcher.backends.kubernetes.client.objects import Node, Taint

MOST_VALUES: Final = 8
"""A label that has more of them is no part of shapes: each value would make another shape of all its labels."""
SIGNIFICANT_BITS: Final = 8
"""Of memory and storage in a shape. Nodes of one kind differ by far less than the last of them."""
_ROUNDED: Final[tuple[str, ...]] = ("memory", "ephemeral-storage")


class BadNodes(Struct, frozen=True, kw_only=True):
    """What the configuration of a pool takes for a reason to start nothing on a node."""

    conditions: tuple[str, ...] = ()
    """``KernelDeadlock`` is bad when it is True, ``GpuHealthy=False`` when it is that."""
    taints: tuple[str, ...] = ()
    """Keys, or ``key=value``."""

    def of(self, node: Node) -> tuple[str, ...]:
        """Those that the node has, in the order of the configuration."""
        conditions = {f"{each.type}={each.status}" for each in node.status.conditions}
        conditions |= {each.type for each in node.status.conditions if each.status == "True"}
        taints = {each.key for each in node.spec.taints} | {f"{each.key}={each.value}" for each in node.spec.taints}
        return (
            *(each for each in self.conditions if each in conditions),
            *(each for each in self.taints if each in taints),
        )


class OwnPart(Struct, frozen=True):
    """What is said of one node beside its shape."""

    shape: int
    labels: dict[str, str]
    spare: dict[str, int]


class NodeShapes(Struct, frozen=True):
    shapes: tuple[ReportedShape, ...]
    by_node: Mapping[str, OwnPart]


class ShapeRules(Struct, frozen=True, kw_only=True):
    """What a pool looks at besides."""

    slot_resource: str
    bad: BadNodes = BadNodes()
    mark: str = ""
    """Key of the label that says that a node is disabled, which is reported otherwise."""


def node_shapes(nodes: Iterable[Node], rules: ShapeRules, *, with_claims: Collection[str] = ()) -> NodeShapes:
    """The shapes of nodes, the same whatever the order of the nodes.

    with_claims  names of nodes whose devices Dynamic Resource Allocation offers
    """
    ordered = sorted(nodes, key=lambda node: node.metadata.name)
    own_keys = _own_keys(ordered)
    numbers: dict[object, int] = {}
    shapes: list[ReportedShape] = []
    by_node: dict[str, OwnPart] = {}
    for node in ordered:
        name = node.metadata.name
        allocatable = {resource: units(resource, value) for resource, value in node.status.allocatable.items()}
        spare = {resource: _beyond(allocatable[resource]) for resource in _ROUNDED if resource in allocatable}
        claims_only = name in with_claims and not allocatable.get(rules.slot_resource)
        labels = {key: value for key, value in node.metadata.labels.items() if value != name and key != rules.mark}
        shape = ReportedShape(
            labels={key: value for key, value in sorted(labels.items()) if key not in own_keys},
            name_labels=tuple(sorted(key for key, value in node.metadata.labels.items() if value == name)),
            taints=tuple(_taint(each) for each in node.spec.taints),
            unschedulable=node.spec.unschedulable,
            ready=any(each.type == "Ready" and each.status == "True" for each in node.status.conditions),
            bad=rules.bad.of(node),
            allocatable={resource: allocatable[resource] - spare.get(resource, 0) for resource in sorted(allocatable)},
            claims_only=claims_only,
        )
        number = numbers.setdefault(_key(shape), len(shapes))
        if number == len(shapes):
            shapes.append(shape)
        by_node[name] = OwnPart(
            number,
            labels={key: value for key, value in labels.items() if key in own_keys},
            spare={resource: amount for resource, amount in spare.items() if amount},
        )
    return NodeShapes(tuple(shapes), by_node)


def _own_keys(nodes: Iterable[Node]) -> set[str]:
    """Labels of which there are too many values, not counting those whose value is the name of their node."""
    values: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for key, value in node.metadata.labels.items():
            if value != node.metadata.name:
                values[key].add(value)
    return {key for key, found in values.items() if len(found) > MOST_VALUES}


def _taint(taint: Taint) -> ReportedTaint:
    return ReportedTaint(key=taint.key, value=taint.value, effect=taint.effect)


def _key(shape: ReportedShape) -> object:
    """Equal for equal shapes, and quick to compare."""
    allocatable = tuple((shape.allocatable or {}).items())
    state = (shape.unschedulable, shape.ready, shape.bad, shape.claims_only)
    return tuple(shape.labels.items()), shape.name_labels, shape.taints, state, allocatable


def _beyond(amount: int) -> int:
    """What is left of an amount when it is rounded down to so many significant bits."""
    return amount % (1 << max(0, amount.bit_length() - SIGNIFICANT_BITS))
