"""Conditions that keep a pod from a node: decides whether the pod may run there, and says what is in the way.

The order is that in which an administrator would look: the state of the node, its taints, what selects it, its size.
Unlike in Kubernetes, nothing starts on a node that is not ready, even where a pod tolerates the taint of such nodes: it
would hold its slots and never run.
Source: the plugins NodeUnschedulable, TaintToleration, NodeAffinity and NodeResourcesFit,
https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from services.scheduler.plan.nodes.amounts import PODS, Amounts, amount_of, in_usual_order
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.nodes.selectors import matches_term
from services.scheduler.plan.nodes.shapes import NodeShape
from services.scheduler.plan.nodes.taints import CORDON, tolerates, untolerated

_OF_NOT_READY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class UnmetCode(StrEnum):
    """Stable names of conditions, for metrics and clients."""

    NOT_READY = "not_ready"
    BAD_CONDITION = "bad_condition"
    CORDONED = "cordoned"
    TAINT = "taint"
    NODE_SELECTOR = "node_selector"
    NODE_AFFINITY = "node_affinity"
    DEVICES_BY_CLAIM = "devices_by_claim"
    SLOTS = "slots"
    RESOURCE = "resource"
    PODS = "pods"


class Unmet(Struct, frozen=True, kw_only=True, gc=False):
    """A condition that a node, or every node of several, does not meet."""

    code: UnmetCode
    subject: str = ""
    """The label, taint, condition or resource that it is about."""
    needed: int = 0
    """Slots, or of a resource in the unit of ``amounts``."""
    offered: int = 0
    """The same, of the node; of several the most that one has."""
    nodes: int = 1
    """Nodes that meet everything else."""
    considered: int = 1
    """Nodes that were looked at."""


def unmet(
    requirements: PodRequirements,
    shape: NodeShape,
    *,
    name: str = "",
    labels: tuple[tuple[str, str], ...] = (),
    taken: Amounts = (),
) -> Unmet | None:
    """The first condition that a node does not meet; None where the pod may run.

    name, labels  of the single node; they may be left out where the requirements do not look at them
    taken         what is not to be had, ``pods`` included, as ``ShapedNode.taken`` has it; without it the node is taken
                  to be empty, and no larger than all of its shape
    """
    return next(conditions_unmet(requirements, shape, name=name, labels=labels, taken=taken), None)


def conditions_unmet(
    requirements: PodRequirements,
    shape: NodeShape,
    *,
    name: str = "",
    labels: tuple[tuple[str, str], ...] = (),
    taken: Amounts = (),
) -> Iterator[Unmet]:
    """Every condition that a node does not meet, as for ``unmet``."""
    if not shape.known:
        return
    yield from _of_state(requirements, shape)
    if requirements.node_selector or requirements.affinity is not None:
        yield from _of_selection(requirements, {**dict(shape.labels), **dict(labels)}, name)
    if shape.allocatable is not None:
        yield from _of_size(requirements, shape, shape.allocatable, taken)


def _of_state(requirements: PodRequirements, shape: NodeShape) -> Iterator[Unmet]:
    if not shape.ready:
        yield Unmet(code=UnmetCode.NOT_READY)
    for each in shape.bad:
        yield Unmet(code=UnmetCode.BAD_CONDITION, subject=each)
    if shape.unschedulable and not tolerates(requirements.tolerations, CORDON):
        yield Unmet(code=UnmetCode.CORDONED)
    for taint in untolerated(requirements.tolerations, shape.taints):
        # Kubernetes sets these beside what has been said already.
        of_cordon = shape.unschedulable and taint == CORDON
        of_state = not shape.ready and taint.key in _OF_NOT_READY
        if not of_cordon and not of_state:
            yield Unmet(code=UnmetCode.TAINT, subject=str(taint))


def _of_selection(requirements: PodRequirements, labels: Mapping[str, str], name: str) -> Iterator[Unmet]:
    for key, value in requirements.node_selector:
        if labels.get(key) != value:
            yield Unmet(code=UnmetCode.NODE_SELECTOR, subject=f"{key}={value}")
    terms = requirements.affinity
    if terms is not None and not any(matches_term(term, labels, name) for term in terms):
        yield Unmet(code=UnmetCode.NODE_AFFINITY, subject=" or ".join(str(term) for term in terms))


def _of_size(requirements: PodRequirements, shape: NodeShape, allocatable: Amounts, taken: Amounts) -> Iterator[Unmet]:
    slot = requirements.slot
    # Slots are what people think of first.
    requests = sorted(
        requirements.requests, key=lambda each: (slot is None or each[0] != slot.name, in_usual_order(each[0]))
    )
    for resource, needed in requests:
        offered = max(0, amount_of(allocatable, resource) - amount_of(taken, resource))
        if not needed or needed <= offered:
            continue
        if slot is None or resource != slot.name:
            yield Unmet(code=UnmetCode.RESOURCE, subject=resource, needed=needed, offered=offered)
        elif shape.offers_claims_only and not amount_of(allocatable, resource):
            yield Unmet(code=UnmetCode.DEVICES_BY_CLAIM, subject=resource)
        else:
            slots = -(-needed // slot.amount)
            yield Unmet(code=UnmetCode.SLOTS, subject=resource, needed=slots, offered=offered // slot.amount)
    pods = amount_of(allocatable, PODS) - amount_of(taken, PODS)
    if pods < 1:
        yield Unmet(code=UnmetCode.PODS, subject=PODS, needed=1, offered=0)
