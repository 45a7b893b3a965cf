"""Nodes as clients know them, "agents": what the launchers publish, joined with what runs there.

Source: docs/reference/scheduling.md 11.1 and docs/reference/kubernetes.md 13.1; ``container.id`` is the id of the
allocation, here and in the summaries of tasks alike, as that is how clients tell who holds a slot.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.cluster import node_overrides
from libs.db.tables.tasks import allocations
from libs.events.capacity import Device as DeviceSeen
from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.natural_order.keys import natural_sort_key
from services.api.versions import REFERENCE_VERSION
from services.api.wire.base import timestamp
from services.api.wire.cluster.agents import (
    Agent,
    Container,
    ContainerState,
    Device,
    DeviceStats,
    DeviceType,
    Slot,
    SlotStats,
)

DEVICE_TYPES: Final = {"cpu": DeviceType.CPU, "cuda": DeviceType.CUDA, "rocm": DeviceType.ROCM}

Overrides = Mapping[str, bool]
"""Name of a node that an administrator has disabled -> whether what runs there may finish."""


async def load_overrides(connection: AsyncConnection) -> dict[str, bool]:
    rows = await connection.execute(select(node_overrides.c.node, node_overrides.c.draining))
    return {row.node: row.draining for row in rows}


async def load_states(connection: AsyncConnection) -> dict[str, ContainerState]:
    """Allocation id -> its state as that of a container, for all that have their slots."""
    query = select(allocations.c.allocation_id, allocations.c.state).where(
        allocations.c.released_at.is_(None), allocations.c.assigned_at.is_not(None)
    )
    return {
        row.allocation_id: ContainerState.__members__.get(row.state, ContainerState.RUNNING)
        for row in await connection.execute(query)
    }


def with_marks(capacity: Iterable[PoolCapacity], marked: Mapping[str, tuple[bool, bool]]) -> list[PoolCapacity]:
    """The same pools, with enabled and draining of some nodes replaced. ``marked`` is by name of the node."""

    def remarked(node: NodeCapacity) -> NodeCapacity:
        if node.name not in marked:
            return node
        enabled, draining = marked[node.name]
        return msgspec.structs.replace(node, enabled=enabled, draining=draining)

    return [msgspec.structs.replace(pool, nodes=tuple(map(remarked, pool.nodes))) for pool in capacity]


def listed(capacity: Iterable[PoolCapacity]) -> list[PoolCapacity]:
    """The same pools without what no list of nodes shows: nodes of a cluster that have no slots.

    Their pools need them, as auxiliary tasks may run there, and they are still found by name.
    """

    def shown(pool: PoolCapacity) -> tuple[NodeCapacity, ...]:
        return tuple(node for node in pool.nodes if node.slots or pool.backend != "kubernetes")

    return [msgspec.structs.replace(pool, nodes=shown(pool)) for pool in capacity]


def agents(capacity: Iterable[PoolCapacity], overrides: Overrides, states: Mapping[str, ContainerState]) -> list[Agent]:
    """Every node once, by name, whatever number of pools it belongs to."""
    pools: dict[str, list[str]] = defaultdict(list)
    nodes: dict[str, NodeCapacity] = {}
    versions: dict[str, str] = {}
    devices: dict[str, dict[str, DeviceSeen]] = defaultdict(dict)
    aux: dict[str, set[str]] = defaultdict(set)
    for pool in capacity:
        for node in pool.nodes:
            nodes.setdefault(node.name, node)
            versions.setdefault(node.name, "" if pool.backend == "kubernetes" else REFERENCE_VERSION)
            pools[node.name].append(pool.pool)
            aux[node.name].update(node.aux_containers)
            for device in node.devices:
                # Pools that share a node each know their own pods, and see those of the others as strangers.
                known = devices[node.name].get(device.id)
                if known is None or _says_more(device, known):
                    devices[node.name][device.id] = device
    return [
        _agent(
            nodes[name],
            version=versions[name],
            pools=pools[name],
            devices=devices[name],
            aux=aux[name],
            draining=overrides.get(name),
            states=states,
        )
        for name in sorted(nodes, key=natural_sort_key)
    ]


def holder_of(device: DeviceSeen) -> str | None:
    """Who holds a slot: an allocation, or the name of a container that is none of ours; None for a free one."""
    return device.allocation or device.container


def _says_more(one: DeviceSeen, other: DeviceSeen) -> bool:
    """An allocation says more than a container, and that more than nothing."""
    return (one.allocation is not None, one.container is not None) > (
        other.allocation is not None,
        other.container is not None,
    )


def _state_of(holder: str, states: Mapping[str, ContainerState]) -> ContainerState:
    """What nobody has seen yet holds its slot anyway, and of strangers we know no more than that they do."""
    return states.get(holder, ContainerState.RUNNING)


def is_available(node: NodeCapacity, overrides: Overrides) -> bool:
    """Whether new work may start there."""
    return node.enabled and not node.draining and node.name not in overrides


def _agent(
    node: NodeCapacity,
    *,
    version: str,
    pools: list[str],
    devices: Mapping[str, DeviceSeen],
    aux: Iterable[str],
    draining: bool | None,
    states: Mapping[str, ContainerState],
) -> Agent:
    enabled = node.enabled and draining is None
    is_draining = node.draining or bool(draining)
    kind = DEVICE_TYPES.get(node.slot_type, DeviceType.UNSPECIFIED)
    containers = {ident: Container(id=ident, state=_state_of(ident, states)) for ident in sorted(aux)}
    slots: dict[str, Slot] = {}
    for ident, seen in sorted(devices.items()):
        device = Device(id=int(ident) if ident.isdecimal() else 0, type=kind)
        container = None
        if (holder := holder_of(seen)) is not None:
            container = containers.setdefault(holder, Container(id=holder, state=_state_of(holder, states)))
            container.devices = [*container.devices, device]
        slots[ident] = Slot(id=ident, device=device, enabled=enabled, draining=is_draining, container=container)
    return Agent(
        id=node.name,
        version=version,
        registered_time=timestamp(datetime.fromisoformat(node.registered_at)) if node.registered_at else None,
        slots=slots,
        containers=containers,
        addresses=list(node.addresses),
        enabled=enabled,
        draining=is_draining,
        resource_pools=sorted(pools, key=natural_sort_key),
        slot_stats=_slot_stats(slots.values()),
    )


def _slot_stats(slots: Iterable[Slot]) -> SlotStats:
    by_type: dict[str, list[Slot]] = defaultdict(list)
    for slot in slots:
        by_type[slot.device.type.value].append(slot)
    return SlotStats(
        type_stats={
            kind: DeviceStats(
                states=dict(Counter(slot.container.state.value for slot in same if slot.container is not None)),
                draining=sum(slot.draining for slot in same),
                disabled=sum(not slot.enabled for slot in same),
                total=len(same),
            )
            for kind, same in by_type.items()
        }
    )
