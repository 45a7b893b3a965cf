"""Nodes, and who holds what on them, as the capacity of a pool.

A slot is a GPU, or as many cores as one slot stands for. Which GPU a pod has is known to its node alone, so slots are
filled from the first: those of our pods, then those of others. Source: docs/reference/kubernetes.md 13;
docs/reference/scheduling.md 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeVar

from msgspec import Struct

from libs.cluster.config import SlotType
from libs.events.capacity import Device, NodeCapacity
from libs.podspec.quantities import amount_in, quantity
from services.launcher.backends.kubernetes.capacity.node_matching import PoolRequirements, matches
from services.launcher.backends.kubernetes.client.objects import Node, ResourceQuota, SlimPod
from services.launcher.backends.kubernetes.manifests.names import node_label

_GPUS = ("nvidia.com/gpu", "amd.com/gpu")


class SlotKind(Struct, frozen=True, kw_only=True):
    """What a slot of the pool is."""

    type: SlotType
    resource: str
    """Of Kubernetes, of which slots are made."""
    cpu: float = 1.0
    """Cores of a slot, where slots are cores."""

    def whole(self, amount: Decimal) -> int:
        """Slots that fit into an amount of the resource."""
        return max(0, int(amount / self._unit))

    def touched(self, amount: Decimal) -> int:
        """Slots of which nothing is left when this amount is taken."""
        return max(0, math.ceil(amount / self._unit))

    def exact(self, amount: Decimal) -> Decimal:
        """Slots, and parts of one, that an amount stands for."""
        return amount / self._unit

    @property
    def _unit(self) -> Decimal:
        return Decimal(str(self.cpu)) if self.type == "cpu" else Decimal(1)


class OurPod(Struct, frozen=True, kw_only=True):
    """A pod of this launcher that holds what it was given."""

    allocation: str
    name: str
    node: str
    slots: int


class ForeignPod(Struct, frozen=True, kw_only=True):
    """A pod of somebody else."""

    name: str
    node: str
    amount: Decimal
    """Of the resource of which slots are made."""
    allocation: str | None = None
    """When it is a task of another pool."""
    is_system: bool = False
    """It belongs to the installation itself; what it takes is not part of the pool."""


class _Holder(NamedTuple):
    """Who holds a slot."""

    container: str
    allocation: str | None
    foreign: bool = False


P = TypeVar("P", OurPod, ForeignPod)


def foreign_pod(pod: SlimPod, kind: SlotKind) -> ForeignPod | None:
    """What somebody else's pod takes away; None when that is nothing."""
    amount = sum((amount_in(requests, kind.resource) for requests in _requests(pod)), Decimal(0))
    if not pod.spec.node_name or not amount or pod.status.phase in ("Succeeded", "Failed"):
        return None
    return ForeignPod(
        name=pod.metadata.name,
        node=pod.spec.node_name,
        amount=amount,
        allocation=pod.metadata.labels.allocation or None,
        is_system=bool(pod.metadata.labels.system),
    )


def slots_of(pod: SlimPod, kind: SlotKind) -> int:
    """Slots that a pod asks for, whether or not it has a node; 0 when it has ended."""
    amount = sum((amount_in(requests, kind.resource) for requests in _requests(pod)), Decimal(0))
    return 0 if pod.status.phase in ("Succeeded", "Failed") else kind.whole(amount)


def node_capacities(
    nodes: Iterable[Node],
    *,
    ours: Sequence[OurPod],
    others: Sequence[ForeignPod],
    kind: SlotKind,
    requirements: PoolRequirements,
    cluster_id: str,
) -> tuple[NodeCapacity, ...]:
    """The nodes of the pool, by name: those its pods can reach, and those they are on already."""
    ours_on = _by_node(ours)
    others_on = _by_node(others)
    found = [
        _node(node, ours_on.get(node.metadata.name, ()), others_on.get(node.metadata.name, ()), kind, cluster_id)
        for node in nodes
        if _is_in_pool(node, requirements, kind) or node.metadata.name in ours_on
    ]
    return tuple(sorted(found, key=lambda node: node.name))


def assumed_nodes(
    slots: int, *, per_node: int, ours: Sequence[OurPod], kind: SlotKind, name: str
) -> tuple[NodeCapacity, ...]:
    """Nodes that stand for those we may not see: as many as it takes, each with the slots of the largest pod."""
    left = _held_by_ours(ours)
    aux = tuple(sorted({pod.allocation for pod in ours if not pod.slots}))
    sizes = [min(per_node, slots - start) for start in range(0, slots, per_node)] if per_node > 0 else []
    nodes = []
    for index, size in enumerate(sizes or [0]):
        held, left = left[:size], left[size:]
        nodes.append(
            NodeCapacity(
                name=f"{name}-{index}",
                slot_type=kind.type,
                devices=_devices(held, size),
                aux_containers=aux if index == 0 else (),
            )
        )
    return tuple(nodes)


def quota_slots(
    quotas: Iterable[ResourceQuota], *, ours: Sequence[OurPod], kind: SlotKind, placeholders: int = 0
) -> int | None:
    """Slots that the namespace allows this pool: what is allowed, without what others in it have. None: no limit.

    placeholders  slots of pods of ours that hold room for tasks, and are gone when these start
    """
    held = sum(pod.slots for pod in ours) + placeholders
    allowed = []
    for quota in quotas:
        for prefix in ("requests.", "limits.", ""):
            name = f"{prefix}{kind.resource}"
            if name not in quota.status.hard:
                continue
            hard = kind.whole(quantity(quota.status.hard[name]))
            used = kind.touched(amount_in(quota.status.used, name))
            allowed.append(max(0, hard - max(0, used - held)))
    return min(allowed, default=None)


def requested_slots(hard: Mapping[str, str | int | float], kind: SlotKind) -> Decimal | None:
    """Slots that pods may ask for under a quota; None when it does not limit them."""
    name = f"requests.{kind.resource}"
    return kind.exact(quantity(hard[name])) if name in hard else None


def _is_in_pool(node: Node, requirements: PoolRequirements, kind: SlotKind) -> bool:
    devices = _GPUS if kind.type == "cpu" else (*_GPUS, kind.resource)
    has_gpus = any(amount_in(node.status.allocatable, name) for name in devices)
    return matches(requirements.gpu if has_gpus else requirements.cpu, node)


def _node(
    node: Node, ours: Sequence[OurPod], others: Sequence[ForeignPod], kind: SlotKind, cluster_id: str
) -> NodeCapacity:
    reserved = sum((pod.amount for pod in others if pod.is_system), Decimal(0))
    slots = kind.whole(amount_in(node.status.allocatable, kind.resource) - reserved)
    held = _held_by_ours(ours)
    held_by_others = _held_by_others([pod for pod in others if not pod.is_system], kind)
    state = node.metadata.labels.get(node_label(cluster_id))
    return NodeCapacity(
        name=node.metadata.name,
        addresses=tuple(address.address for address in node.status.addresses),
        registered_at=node.metadata.creation_timestamp,
        slot_type=kind.type,
        devices=_devices([*held, *held_by_others], slots),
        enabled=takes_pods(node, cluster_id),
        draining=state == "no-schedule",
        aux_containers=tuple(sorted({pod.allocation for pod in ours if not pod.slots})),
    )


def takes_pods(node: Node, cluster_id: str) -> bool:
    """Whether it is in service: ready, not cordoned, and not disabled by an administrator of this installation."""
    return _is_ready(node) and not node.spec.unschedulable and node_label(cluster_id) not in node.metadata.labels


def _held_by_ours(ours: Sequence[OurPod]) -> list[_Holder]:
    return [_Holder(pod.name, pod.allocation) for pod in ours for _ in range(pod.slots)]


def _held_by_others(others: Sequence[ForeignPod], kind: SlotKind) -> list[_Holder]:
    """A holder for each slot that others leave nothing of; where several share a slot, the largest stands for all."""
    slots = kind.touched(sum((pod.amount for pod in others), Decimal(0)))
    largest = sorted(others, key=lambda pod: (-pod.amount, pod.name))
    held: list[_Holder] = []
    for pod in largest:
        held += [_Holder(pod.name, pod.allocation, foreign=True)] * max(1, kind.whole(pod.amount))
    return held[:slots] if len(held) >= slots else [*held, *[held[0]] * (slots - len(held))]


def _devices(held: Sequence[_Holder], slots: int) -> tuple[Device, ...]:
    return tuple(
        Device(
            id=f"{index:03d}",
            allocation=held[index].allocation,
            container=held[index].container,
            foreign=held[index].foreign,
        )
        if index < len(held)
        else Device(id=f"{index:03d}")
        for index in range(slots)
    )


def _is_ready(node: Node) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)


def _requests(pod: SlimPod) -> list[Mapping[str, str | int | float]]:
    """Requests of everything in the pod that runs side by side; limits where there are no requests."""
    lasting = (
        *pod.spec.containers,
        *(each for each in pod.spec.init_containers if each.restart_policy == "Always"),
    )
    return [{**(each.resources.limits or {}), **(each.resources.requests or {})} for each in lasting]


def _by_node(pods: Iterable[P]) -> dict[str, list[P]]:
    found: dict[str, list[P]] = {}
    for pod in pods:
        found.setdefault(pod.node, []).append(pod)
    return found
