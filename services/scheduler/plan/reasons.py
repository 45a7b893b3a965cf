"""Reasons why an allocation waits, for people to read. Numbers that change from plan to plan are in the
detail of a wait (decisions.py)."""

from __future__ import annotations

from enum import StrEnum


class WaitReason(StrEnum):
    CAPACITY_UNKNOWN = "the resource pool has not reported its capacity yet"
    NO_ROOM = "waiting for slots to become free"
    NO_AUX_ROOM = "waiting for auxiliary capacity to become free"
    TOO_LARGE = "the resource pool is too small for it, even when empty"
    NO_SUCH_NODE = "no node of the resource pool meets its requirements"
    FOREIGN_PODS = "waiting for pods that are not of the resource pool to leave its nodes"
    NO_RESOURCES = "waiting for cores, memory or other resources to become free where slots are"
    TOPOLOGY = "waiting for room in one domain of the topology that it requires"
    NO_SUCH_DOMAIN = "no domain of the topology that it requires is large enough, even when empty"
    OUT_OF_SERVICE = "waiting for nodes that are disabled or draining"
    MAINTENANCE = "waiting for the end of maintenance"
    NODES_EXCLUDED = "the nodes that log policies exclude leave it no room"
    BEHIND_PRIORITY = "waiting behind a request of higher priority"
    BEHIND_RESERVATION = "the free slots are kept for a request that has waited longer"
    POOL_GROWING = "waiting for nodes that the resource pool has asked the cluster for"
    PREEMPTING = "waiting for the tasks that make room for it to save their state and leave"
    MOVED = "waiting for the nodes that it was moved to"
    JOB_MAX_SLOTS = "its job holds as many slots as max_slots allows"
    POOL_QUOTA = "the quota of the resource pool is used up"
    EQUAL_PODS = "the launcher of the resource pool makes pods of one size only, into which its slots cannot be divided"
    NO_PORTS = "waiting for ports to become free: running trials hold them all"
    WORKSPACE_QUOTA = "the resource quota of its workspace is used up"
    SLOT_LIMIT = "a limit of slots at once is reached"
    HOUR_LIMIT = "a limit of slot-hours is reached"

    @property
    def code(self) -> str:
        """A stable name for programs; labels of metrics have it, too."""
        return self.name.lower()
