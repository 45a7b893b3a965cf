"""Tracks who holds what on the nodes of the pool, and what that makes of its capacity."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from libs.clock import Clock
from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.podspec.pod_requests import Requests
from services.launcher.backends.kubernetes.allocations.state.pods import is_over
from services.launcher.backends.kubernetes.allocations.tracking import CAPACITY, Tracker
from services.launcher.backends.kubernetes.capacity.foreign_requests import ForeignRequests
from services.launcher.backends.kubernetes.capacity.node_matching import PoolRequirements
from services.launcher.backends.kubernetes.capacity.node_parts import BadNodes, ShapeRules
from services.launcher.backends.kubernetes.capacity.shapes import NodeShapes, ShapeFinder
from services.launcher.backends.kubernetes.capacity.slots import (
    ForeignPod,
    OurPod,
    SlotKind,
    assumed_nodes,
    foreign_pod,
    node_capacities,
    quota_slots,
    slots_of,
)
from services.launcher.backends.kubernetes.client.objects import Node, ResourceQuota, ResourceSlice, SlimPod
from services.launcher.backends.kubernetes.manifests.names import launcher_id, node_label

PAUSE_S: Final = 0.5
"""Shortest time between two looks at everything: a change of any pod may be one of the capacity."""


class CapacityTracker:
    """Listens to nodes, quotas and the pods of others; those of ours are in the tracker."""

    def __init__(
        self,
        *,
        pool: str,
        namespace: str,
        cluster_id: str,
        kind: SlotKind,
        requirements: PoolRequirements,
        max_slots_per_pod: int | None,
        max_aux_per_node: int,
        assumed_slots: int | None,
        launcher_requests: Requests,
        bad_nodes: BadNodes,
        tracker: Tracker,
        clock: Clock,
    ) -> None:
        self._pool = pool
        self._namespace = namespace
        self._cluster_id = cluster_id
        self._kind = kind
        self._requirements = requirements
        self._max_slots_per_pod = max_slots_per_pod
        self._max_aux_per_node = max_aux_per_node
        self._assumed_slots = assumed_slots
        self._launcher_requests = launcher_requests
        rules = ShapeRules(slot_resource=kind.resource, bad=bad_nodes, mark=node_label(cluster_id))
        self._shape_finder = ShapeFinder(rules)
        self._tracker = tracker
        self._clock = clock
        self._quotas: dict[str, dict[str, ResourceQuota]] = {}
        """By namespace, and by name; those of namespaces that are watched."""
        self._launcher = launcher_id(cluster_id, pool)
        self._placeholders: dict[str, tuple[str, int]] = {}
        """Uid of each of our own: its namespace, and its slots. They hold what is kept for a task anyway."""
        self._others: dict[str, ForeignPod] = {}
        self._foreign = ForeignRequests()
        self._nodes_of_slices: dict[str, str] = {}
        """Name of a ResourceSlice -> the node whose devices it offers."""
        self._shapes = NodeShapes((), {})
        self._shapes_of: object = None
        """What the shapes were found from."""
        self._looked_at = 0.0
        self._free_slots: int | None = None
        self._free_of: dict[str, int] = {}
        self.nodes = _Nodes(tracker, bad_nodes, self._shape_finder)
        self.slices = _Handler(self._on_slice, self._on_slice_deleted)
        self.quotas = _Handler(self._on_quota, self._on_quota_deleted)
        self.others = _Handler(self._on_other, self._on_other_deleted)

    async def capacity(self) -> PoolCapacity:
        """The capacity as it is now; takes a moment when it was asked for just before."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._looked_at + PAUSE_S - loop.time()))
        self._looked_at = loop.time()
        ours = self._ours_by_namespace()
        quotas = self._quotas_now(ours)
        quota = quotas.get(self._namespace)
        nodes = self._with_shapes(self._nodes_now([pod for pods in ours.values() for pod in pods if pod.node], quota))
        self._free_slots = sum(not device.container for node in nodes if node.enabled for device in node.devices)
        return PoolCapacity(
            pool=self._pool,
            backend="kubernetes",
            nodes=nodes,
            slot_type=self._kind.type,
            max_slots_per_pod=self._per_pod(nodes),
            max_aux_containers_per_node=self._max_aux_per_node,
            quota_slots=quota,
            quota_slots_of={name: slots for name, slots in sorted(quotas.items()) if name != self._namespace},
            shapes=self._shapes.shapes,
            launcher_requests=self._launcher_requests,
            uneven_pods=self._tracker.nodes is not None,
            seen_at=self._clock.now().isoformat(),
        )

    def free_slots_in(self, namespace: str) -> int | None:
        """Slots that are free to a task in a namespace, as of the last look at the capacity."""
        within_quota = self._free_of.get(namespace)
        if self._free_slots is None or within_quota is None:
            return self._free_slots
        return min(self._free_slots, within_quota)

    def forget_namespace(self, namespace: str) -> None:
        """It is not watched any more."""
        if self._quotas.pop(namespace, None):
            self._tracker.notify(CAPACITY)

    def _quotas_now(self, ours: Mapping[str, list[OurPod]]) -> dict[str, int]:
        """Slots that each namespace with a quota on them leaves us; notes what is free of them."""
        found: dict[str, int] = {}
        self._free_of = {}
        for namespace, quotas in self._quotas.items():
            held = ours.get(namespace, [])
            placeholders = sum(slots for where, slots in self._placeholders.values() if where == namespace)
            slots = quota_slots(quotas.values(), ours=held, kind=self._kind, placeholders=placeholders)
            if slots is not None:
                found[namespace] = slots
                self._free_of[namespace] = max(0, slots - sum(pod.slots for pod in held))
        return found

    def _nodes_now(self, ours: list[OurPod], quota: int | None) -> tuple[NodeCapacity, ...]:
        if self._tracker.nodes is not None:
            return node_capacities(
                self._tracker.nodes.values(),
                ours=ours,
                others=list(self._others.values()),
                kind=self._kind,
                requirements=self._requirements,
                cluster_id=self._cluster_id,
            )
        slots = self._assumed_slots if self._assumed_slots is not None else quota or 0
        per_node = self._max_slots_per_pod or slots
        return assumed_nodes(slots, per_node=per_node, ours=ours, kind=self._kind, name=self._namespace)

    def _with_shapes(self, nodes: tuple[NodeCapacity, ...]) -> tuple[NodeCapacity, ...]:
        """The nodes with what pods may ask of them, as far as nodes can be seen."""
        seen = self._tracker.nodes
        if seen is None:
            return nodes
        names = tuple(node.name for node in nodes)
        found_from = (self.nodes.version, names, frozenset(self._nodes_of_slices.values()))
        if found_from != self._shapes_of:
            self._shapes = self._shape_finder.find((seen[name] for name in names), with_claims=found_from[2])
            self._shapes_of = found_from
        return tuple(self._with_shape(node) for node in nodes)

    def _with_shape(self, node: NodeCapacity) -> NodeCapacity:
        own = self._shapes.by_node[node.name]
        return msgspec.structs.replace(
            node,
            enabled=node.enabled and not self._shapes.shapes[own.shape].bad,
            shape=own.shape,
            labels=own.labels,
            spare=own.spare,
            foreign=self._foreign.on(node.name),
        )

    def _ours_by_namespace(self) -> dict[str, list[OurPod]]:
        """Our pods that have not ended: a quota counts those without a node too."""
        found: dict[str, list[OurPod]] = {}
        for tracked in self._tracker.allocations.values():
            held = found.setdefault(tracked.namespace, [])
            held += [
                OurPod(
                    allocation=tracked.allocation,
                    name=pod.metadata.name,
                    node=pod.spec.node_name,
                    slots=tracked.slots_of(pod.job),
                )
                for pod in tracked.observed.pods.values()
                if not is_over(pod)
            ]
        return found

    def _per_pod(self, nodes: tuple[NodeCapacity, ...]) -> int:
        largest = max((node.slots for node in nodes), default=0)
        return largest if self._max_slots_per_pod is None else self._max_slots_per_pod

    def _on_quota(self, quota: ResourceQuota) -> None:
        self._quotas.setdefault(quota.metadata.namespace, {})[quota.metadata.name] = quota
        self._tracker.notify(CAPACITY)

    def _on_quota_deleted(self, quota: ResourceQuota) -> None:
        self._quotas.get(quota.metadata.namespace, {}).pop(quota.metadata.name, None)
        self._tracker.notify(CAPACITY)

    def _on_slice(self, item: ResourceSlice) -> None:
        if self._nodes_of_slices.get(item.metadata.name) != item.spec.node_name:
            self._nodes_of_slices[item.metadata.name] = item.spec.node_name
            self._tracker.notify(CAPACITY)

    def _on_slice_deleted(self, item: ResourceSlice) -> None:
        if self._nodes_of_slices.pop(item.metadata.name, None) is not None:
            self._tracker.notify(CAPACITY)

    def _on_other(self, pod: SlimPod) -> None:
        if pod.metadata.labels.placeholder == self._launcher:
            held = (pod.metadata.namespace, slots_of(pod, self._kind))
            if self._placeholders.get(pod.metadata.uid) != held:
                self._placeholders[pod.metadata.uid] = held
                self._tracker.notify(CAPACITY)
            return
        # What holds no slot is told with the next report: pods come and go all the time in a large cluster.
        self._foreign.note(pod)
        holder = foreign_pod(pod, self._kind)
        before = self._others.get(pod.metadata.uid)
        if holder == before:
            return
        if holder is None:
            self._others.pop(pod.metadata.uid, None)
        else:
            self._others[pod.metadata.uid] = holder
        self._tracker.notify(CAPACITY)

    def _on_other_deleted(self, pod: SlimPod) -> None:
        self._foreign.forget(pod)
        held = self._placeholders.pop(pod.metadata.uid, None)
        if self._others.pop(pod.metadata.uid, None) is not None or held is not None:
            self._tracker.notify(CAPACITY)


class _Nodes:
    def __init__(self, tracker: Tracker, bad_nodes: BadNodes, shape_finder: ShapeFinder) -> None:
        self._tracker = tracker
        self._bad_nodes = bad_nodes
        self._shape_finder = shape_finder
        self.version = 0
        """Grows when a node is another."""

    def on_upsert(self, item: Node) -> None:
        if self._tracker.nodes is None:
            self._tracker.nodes = {}
        before = self._tracker.nodes.get(item.metadata.name)
        self._tracker.nodes[item.metadata.name] = item
        if before is None or self._significant(before) != self._significant(item):
            self._changed(item.metadata.name)

    def on_delete(self, item: Node) -> None:
        if self._tracker.nodes is not None:
            self._tracker.nodes.pop(item.metadata.name, None)
            self._changed(item.metadata.name)

    def _changed(self, name: str) -> None:
        self.version += 1
        self._shape_finder.forget(name)
        self._tracker.node_changed(name)

    def _significant(self, node: Node) -> object:
        """What of a node matters here; kubelets write their status every few seconds."""
        ready = [condition.status for condition in node.status.conditions if condition.type == "Ready"]
        bad = self._bad_nodes.of(node)
        return node.metadata.labels, node.spec, node.status.allocatable, node.status.addresses, ready, bad


class _Handler:
    def __init__(self, on_upsert: Callable[..., None], on_delete: Callable[..., None]) -> None:
        self.on_upsert = on_upsert
        self.on_delete = on_delete
