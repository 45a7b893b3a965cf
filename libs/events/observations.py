"""Observations: what a launcher sees of one allocation, whole, each time something about it changed."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

PodState = Literal["ASSIGNED", "PULLING", "STARTING", "RUNNING", "TERMINATED"]
FailureKind = Literal["", "FAILED", "ABORTED", "NODE_LOST", "DELETED", "LAUNCH_ERROR", "IMAGE_PULL"]


class Address(Struct, frozen=True, kw_only=True):
    """Where a port of a task is reached by those who cannot reach its pod."""

    container_ip: str
    """The same as ``host_ip``, as in the reference."""
    container_port: int
    """What the task listens on."""
    host_ip: str
    """Or the name of a host."""
    host_port: int


class ObservedPod(Struct, frozen=True, kw_only=True):
    name: str
    """Identity of the pod; shown as the container id of its log lines."""
    runtime_id: str = ""
    """Id of its container in the container runtime, as cAdvisor has it; empty without a runtime."""
    job: str = ""
    """Name of the Job that it belongs to, in a cluster."""
    state: PodState
    node: str = ""
    addresses: tuple[str, ...] = ()
    proxied: tuple[Address, ...] = ()
    """Of the ports that are proxied, as ``TaskSpec.proxy_ports`` has them, where a gateway stands before the pod."""
    devices: tuple[str, ...] = ()
    """Ids of the slots it holds on its node."""
    slots: int = 0
    """How many it has, where the pods of its allocation differ in that; 0 where they do not."""
    has_to_leave: bool = False
    """Somebody in the cluster, as a scheduler that preempts, has asked for its place."""
    exit_code: int | None = None
    failure: FailureKind = ""
    """Why it ended otherwise than by itself with code 0: FAILED is a non-zero exit code; ABORTED never started, through
    no fault of its own; LAUNCH_ERROR cannot be made as it is configured."""
    vanished: bool = False
    """It is gone without a word: nobody saw it end, nor that somebody wanted it to. ``failure`` is DELETED then."""
    message: str = ""
    is_consequence: bool = False
    """The launcher made it end, by an order or because another pod had failed; so it explains nothing itself."""


class AllocationObserved(Struct, frozen=True, kw_only=True, tag_field="type", tag="allocation.observed"):
    """All pods of one allocation as last seen; the highest ``revision`` wins, so reordering does no harm.

    ``revision`` grows with every observation of the allocation, also over restarts of the launcher.
    ``gone`` says that nothing of the allocation exists any more and nothing more will be seen.
    """

    allocation: str
    pool: str
    revision: int
    pods: tuple[ObservedPod, ...] = ()
    num_pods: int = 1
    gone: bool = False
    stopped: bool = False
    """It ended because an order said stop, before any of its pods had ended by itself."""
    failure: FailureKind = ""
    """Failure of the allocation as a whole, as when its objects were refused or deleted by somebody."""
    message: str = ""
    """Words for the whole; of a LAUNCH_ERROR, what whoever refused to make it has said."""
    quota_blocked: bool = False
    unplaced: str = ""
    """How many pods of a gang have found a node in all the time that they may take, and what the cluster says of the
    others; empty while that is not over, and for gangs that are whole. The scheduler takes the gang back."""
    closed_nodes: tuple[str, ...] = ()
    """Nodes of its pods that take no new ones, as a capacity of a larger revision will say."""
