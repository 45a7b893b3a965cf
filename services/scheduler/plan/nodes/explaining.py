"""Explains why no node can run a pod: the conditions that would have to change, the nearest to success first."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from services.scheduler.plan.nodes.amounts import in_words
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.nodes.shapes import ShapedNode
from services.scheduler.plan.nodes.unmet import Unmet, UnmetCode, conditions_unmet


def excluding(requirements: PodRequirements, nodes: Iterable[ShapedNode]) -> tuple[Unmet, ...]:
    """The conditions that exclude every one of the nodes, taken as empty; none where the pod may run on one.

    A condition is listed when nodes would do but for it, those with most of such nodes first. Where each node misses
    several conditions, the one is listed that most nodes miss, with 0 nodes. Without any node there is none to list.
    """
    return excluding_kinds(requirements, ((node, 1) for node in nodes))


def excluding_kinds(requirements: PodRequirements, kinds: Iterable[tuple[ShapedNode, int]]) -> tuple[Unmet, ...]:
    """The same of nodes of which some are alike: one of each kind, and how many there are."""
    missed: dict[tuple[Unmet, ...], int] = {}
    for node, count in kinds:
        found = tuple(conditions_unmet(requirements, node.shape, name=node.name, labels=node.labels, taken=node.empty))
        if not found:
            return ()
        missed[found] = missed.get(found, 0) + count
    considered = sum(missed.values())
    alone = _summed({found: count for found, count in missed.items() if len(found) == 1})
    if alone:
        return tuple(msgspec.structs.replace(each, considered=considered) for each in alone)
    most = _summed(missed)[:1]
    return tuple(msgspec.structs.replace(each, nodes=0, considered=considered) for each in most)


def _summed(by_kind: dict[tuple[Unmet, ...], int]) -> list[Unmet]:
    """One of each condition, with how many nodes miss it and the most that one of them offers; most nodes first."""
    found: dict[tuple[UnmetCode, str], Unmet] = {}
    for conditions, count in by_kind.items():
        for each in conditions:
            key = (each.code, each.subject)
            before = found.get(key)
            found[key] = msgspec.structs.replace(
                each,
                nodes=count + (before.nodes if before else 0),
                offered=max(each.offered, before.offered if before else 0),
            )
    return sorted(found.values(), key=lambda each: (-each.nodes, list(UnmetCode).index(each.code), each.subject))


def sentence(condition: Unmet, requirements: PodRequirements) -> str:
    """What is missing, with its numbers: ``needs 8 slots with gpu=a100; the largest such node has 4``."""
    subject = condition.subject
    labels = ", ".join(f"{key}={value}" for key, value in requirements.node_selector)
    such = f" with {labels}" if labels else ""
    match condition.code:
        case UnmetCode.SLOTS:
            needed = "1 slot" if condition.needed == 1 else f"{condition.needed} slots"
            return f"needs {needed}{such}; {_largest(condition)} has {condition.offered}"
        case UnmetCode.RESOURCE:
            needed, offered = in_words(subject, condition.needed), in_words(subject, condition.offered)
            return f"needs {needed}{such}; {_largest(condition)} has {offered}"
        case UnmetCode.NODE_SELECTOR:
            said = f"needs a node with {subject}, which no node has"
        case UnmetCode.NODE_AFFINITY:
            said = f"its node affinity ({subject}) matches no node" if subject else "its node affinity matches no node"
        case UnmetCode.TAINT:
            said = f"does not tolerate the taint {subject}"
        case UnmetCode.CORDONED:
            said = f"needs a node{such} that is not cordoned"
        case UnmetCode.NOT_READY:
            said = f"needs a node{such} that is ready"
        case UnmetCode.BAD_CONDITION:
            said = f"needs a node{such} without {subject}"
        case UnmetCode.DEVICES_BY_CLAIM:
            said = f"needs {subject}, but the devices are offered through Dynamic Resource Allocation only"
        case UnmetCode.PODS:
            said = f"needs a node{such} that is allowed one more pod"
    return f"{said}; {_otherwise(condition.nodes)}"


def _largest(condition: Unmet) -> str:
    return "the largest such node" if condition.nodes else "the largest node"


def _otherwise(nodes: int) -> str:
    if not nodes:
        return "no node meets all other conditions"
    return "1 node meets all other conditions" if nodes == 1 else f"{nodes} nodes meet all other conditions"
