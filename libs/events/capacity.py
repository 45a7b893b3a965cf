"""Capacity: what a pool could run, as its launcher sees it; a value in the KV bucket ``CAPACITY`` per pool."""

from __future__ import annotations

from msgspec import Struct

from libs.events.node_shapes import ReportedShape


class Device(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    """Slot id on the node: ``000``, ``001``, ..."""
    allocation: str | None = None
    container: str | None = None
    """Id of the container that holds the slot; set without ``allocation`` when the holder is not ours."""
    foreign: bool = False
    """The container is not of this pool, even if it belongs to an ``allocation``."""


class NodeCapacity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    addresses: tuple[str, ...] = ()
    registered_at: str = ""
    """RFC 3339."""
    slot_type: str = "cpu"
    devices: tuple[Device, ...] = ()
    enabled: bool = True
    draining: bool = False
    aux_containers: tuple[str, ...] = ()
    """Allocations without slots that run here."""
    shape: int | None = None
    """Where in ``PoolCapacity.shapes`` its shape is; None where nothing is known of it but slots."""
    labels: dict[str, str] = {}
    """Labels that distinguish it from others of its shape."""
    spare: dict[str, int] = {}
    """What it has of resources beyond the ``allocatable`` of its shape."""
    foreign: dict[str, int] = {}
    """Requested here by pods that are of no task of the pool, ``pods`` included. What others take of slots is known at
    once; the rest may be half a minute old."""

    @property
    def slots(self) -> int:
        return len(self.devices)


class PoolCapacity(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="pool.capacity"):
    pool: str
    backend: str
    """``process`` or ``kubernetes``."""
    nodes: tuple[NodeCapacity, ...] = ()
    slot_type: str = "cpu"
    max_slots_per_pod: int = 0
    max_aux_containers_per_node: int = 100
    quota_slots: int | None = None
    """What the quota of the pool's namespace leaves to this installation."""
    quota_slots_of: dict[str, int] = {}
    """The same for namespaces of workspaces; those without a limit, or that hold nothing yet, are absent."""
    linked_users_blocked_by: str = ""
    """What keeps users who are linked with accounts of the machine from the interpreters of tasks; empty: nothing."""
    shapes: tuple[ReportedShape, ...] = ()
    """Each once; what nodes refer to."""
    launcher_requests: dict[str, int] = {}
    """What the launcher's own containers request in each pod, beside what the task does."""
    uneven_pods: bool = False
    """Whether the launcher runs allocations whose pods differ in slots: launchers of releases before do not, nor those
    that cannot see nodes."""
    seen_at: str = ""
    revision: int = 0
    """Larger than that of every observation by the same launcher that it is at least as new as, and smaller than those
    of later ones; 0 of releases that do not count."""

    @property
    def slots(self) -> int:
        return sum(node.slots for node in self.nodes if node.enabled)

    @property
    def sees_nodes(self) -> bool:
        """Whether the launcher says what its nodes are, if there are any. Others assume slots: their nodes have names
        that nobody in the cluster knows, and what pods need beside slots is unknown."""
        return bool(self.shapes) or not self.nodes
