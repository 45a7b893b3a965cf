"""Counts the slots of a pool for Prometheus, whenever its launcher reports them."""

from __future__ import annotations

from collections import Counter
from typing import Final

from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.telemetry import gauge

SLOTS: Final = gauge(
    "resolute_launcher_slots",
    "Slots of the pool by kind: free, used by a task of the pool, foreign (used by anything else), disabled",
    "pool",
    "kind",
)
NODES: Final = gauge("resolute_launcher_nodes", "Nodes of the pool", "pool")
KINDS: Final = ("free", "used", "foreign", "disabled")


def show_capacity(capacity: PoolCapacity) -> None:
    """Make the metrics say what ``capacity`` says."""
    slots = slots_by_kind(capacity)
    for kind in KINDS:
        SLOTS.labels(capacity.pool, kind).set(slots[kind])
    NODES.labels(capacity.pool).set(len(capacity.nodes))


def slots_by_kind(capacity: PoolCapacity) -> Counter[str]:
    """How many slots of each of ``KINDS`` there are; what runs on a disabled node still uses its slot."""
    return Counter(kind for node in capacity.nodes for kind in _kinds(node))


def _kinds(node: NodeCapacity) -> list[str]:
    idle = "free" if node.enabled and not node.draining else "disabled"
    kinds = []
    for device in node.devices:
        if device.allocation is None and device.container is None:
            kinds.append(idle)
        else:
            kinds.append("foreign" if device.foreign or device.allocation is None else "used")
    return kinds
