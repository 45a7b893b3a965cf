"""Snapshot that a plan is made from: everything that matters about one pool at one moment.

There may be a hundred thousand of these structs. They hold nothing that could hold them, so the garbage collector need
not look at them (``gc=False``); it would take as long as the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

FittingPolicy = Literal["best", "worst"]


class NodeSlots(Struct, frozen=True, kw_only=True, gc=False):
    """A node as far as tasks are concerned; what anything else holds is already subtracted."""

    name: str
    slots: int
    """Slots that allocations may hold together."""
    lent: int = 0
    """Those of them that tasks of other pools hold; they come back."""
    max_aux: int
    """Pods without slots that may run side by side."""
    available: bool = True
    """False when nothing new may start there: disabled, draining, or excluded by an administrator."""


class HeldAllocation(Struct, frozen=True, kw_only=True, gc=False):
    """An allocation that has its slots."""

    allocation: str
    job: str
    pods: tuple[tuple[str, int], ...]
    """Node and slots of each pod that has not ended; a node may be unknown by now."""
    namespace: str = ""
    """Whose quota it counts against; "" is the namespace of the pool."""

    @property
    def slots(self) -> int:
        return sum(slots for _, slots in self.pods)


class PendingAllocation(Struct, frozen=True, kw_only=True, gc=False):
    """An allocation that waits for its slots."""

    allocation: str
    job: str
    pods: tuple[int, ...]
    """Slots of each pod, in rank order; the pods of a request are of one size, 0 for an auxiliary task."""
    priority: int
    submitted_at: datetime
    """When its job was submitted."""
    requested_at: datetime
    blocked_nodes: frozenset[str] = frozenset()
    namespace: str = ""

    @property
    def slots(self) -> int:
        return sum(self.pods)


class PoolSnapshot(Struct, frozen=True, kw_only=True):
    nodes: tuple[NodeSlots, ...] | None
    """None when the launcher of the pool has not said yet what it has: then nothing starts."""
    held: tuple[HeldAllocation, ...] = ()
    pending: tuple[PendingAllocation, ...] = ()
    max_slots_by_job: Mapping[str, int] = {}
    """Of jobs that have a limit: slots that they may hold together."""
    quota_slots: int | None = None
    """Slots that may be held in the pool's own namespace, where less than its nodes have."""
    quota_by_namespace: Mapping[str, int] = {}
    """The same for namespaces of workspaces that have a quota."""
    larger_priority_first: bool = False
    """Kubernetes pools: larger is more important. All others: smaller is. Source: docs/reference/scheduling.md 0
    (3)."""
    fitting: FittingPolicy = "best"
