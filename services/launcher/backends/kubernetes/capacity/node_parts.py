"""What each node says of itself, before it is compared with others (pure)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from libs.events.node_shapes import ReportedShape, ReportedTaint
from libs.podspec.quantities import units
from services.launcher.backends.kubernetes.client.objects import Node, Taint

DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
"""Key of the taint of nodes that the Cluster Autoscaler takes away unless they are used soon."""
SIGNIFICANT_BITS: Final = 8
"""Of memory and storage in a shape. Nodes of one kind differ by far less than the last of them."""
_ROUNDED: Final[tuple[str, ...]] = ("memory", "ephemeral-storage")
LEAVING_TAINTS: Final = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption")
"""Taints by which autoscalers mark nodes that they are about to delete; the last one is of Karpenter before 1.0. Pods
that tolerate every taint would be started there only to be evicted."""


class BadNodes(Struct, frozen=True, kw_only=True):
    """Reasons to start nothing on a node: those that the configuration of a pool names, and its coming deletion."""

    conditions: tuple[str, ...] = ()
    """``KernelDeadlock`` is bad when it is True, ``GpuHealthy=False`` when it is that."""
    taints: tuple[str, ...] = ()
    """Keys, or ``key=value``."""

    def of(self, node: Node) -> tuple[str, ...]:
        """Those that the node has, in the order of the configuration; the marks of autoscalers come last."""
        conditions = {f"{each.type}={each.status}" for each in node.status.conditions}
        conditions |= {each.type for each in node.status.conditions if each.status == "True"}
        taints = {each.key for each in node.spec.taints} | {f"{each.key}={each.value}" for each in node.spec.taints}
        return (
            *(each for each in self.conditions if each in conditions),
            *(each for each in self.taints if each in taints),
            *(each for each in LEAVING_TAINTS if each in taints and each not in self.taints),
        )


class ShapeRules(Struct, frozen=True, kw_only=True):
    """What a pool looks at besides."""

    slot_resource: str
    bad: BadNodes = BadNodes()
    mark: str = ""
    """Key of the label that says that a node is disabled, which is reported otherwise."""


class NodePart(Struct, frozen=True, kw_only=True):
    """What one node contributes to the shapes of all."""

    labels: dict[str, str]
    """By key; without the mark, and without those whose value is the name of the node."""
    rest: ReportedShape
    """All else that pods may ask for, without labels."""
    rest_key: object
    """Equal for an equal rest, and quick to compare."""
    spare: dict[str, int]
    """What the rounding of the rest leaves out."""
    has_slots: bool
    """By the extended resource that slots are made of."""


def node_part(node: Node, rules: ShapeRules) -> NodePart:
    name = node.metadata.name
    allocatable = {resource: units(resource, value) for resource, value in sorted(node.status.allocatable.items())}
    spare = {resource: _beyond(allocatable[resource]) for resource in _ROUNDED if resource in allocatable}
    rest = ReportedShape(
        name_labels=tuple(sorted(key for key, value in node.metadata.labels.items() if value == name)),
        taints=tuple(_taint(each) for each in node.spec.taints),
        unschedulable=node.spec.unschedulable,
        ready=any(each.type == "Ready" and each.status == "True" for each in node.status.conditions),
        bad=rules.bad.of(node),
        allocatable={resource: amount - spare.get(resource, 0) for resource, amount in allocatable.items()},
    )
    return NodePart(
        labels={
            key: value for key, value in sorted(node.metadata.labels.items()) if value != name and key != rules.mark
        },
        rest=rest,
        rest_key=_key(rest),
        spare={resource: amount for resource, amount in spare.items() if amount},
        has_slots=bool(allocatable.get(rules.slot_resource)),
    )


def _taint(taint: Taint) -> ReportedTaint:
    # The value is the moment at which it was set: nodes would have as many shapes.
    value = "" if taint.key == DELETION_CANDIDATE else taint.value
    return ReportedTaint(key=taint.key, value=value, effect=taint.effect)


def _key(rest: ReportedShape) -> object:
    state = (rest.unschedulable, rest.ready, rest.bad)
    return rest.name_labels, rest.taints, state, tuple((rest.allocatable or {}).items())


def _beyond(amount: int) -> int:
    """What is left of an amount when it is rounded down to so many significant bits."""
    return amount % (1 << max(0, amount.bit_length() - SIGNIFICANT_BITS))
