"""Settings of the Kubernetes backend."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct


class ShipperSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: Literal["fluent-bit", "builtin"] = "fluent-bit"
    """``fluent-bit``: a sidecar in every task pod. ``builtin``: a small program inside the task container, for clusters
    that have no such image."""
    image: str = "fluent/fluent-bit:5.1.1"
    """Of the sidecar. Version 4.2 or newer: older ones may hang when they are asked to end. An intake with https at an
    IP address needs version 5."""
    uid: int | None = None
    """User of the sidecar; None takes that of the task."""
    gid: int | None = None
    """Group of the sidecar; None takes that of the task."""
    grace_s: Annotated[int, Meta(ge=1)] = 55
    """How long the sidecar may take to deliver the last lines once a task has ended. Pods whose spec says nothing about
    it get a little more to end; in others the sidecar gets a little less than the pod."""
    flush_s: Annotated[float, Meta(gt=0)] = 0.5
    """Longest time that a line waits for others before it is sent."""
    max_unshipped_bytes: Annotated[int, Meta(ge=1 << 20)] = 1 << 30
    """Output of a pod that may lie on the node's disk, copies that fluent-bit keeps of what it could not send included.
    A task that prints more than that waits until some of it is stored."""


class StandbySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of several launchers of a pool one acts, the holder of a Lease in the pool's namespace; the others stand by."""

    lease_s: Annotated[int, Meta(ge=1)] = 15
    """How long a Lease must not have been renewed before another launcher takes over."""
    renew_deadline_s: Annotated[float, Meta(gt=0)] = 10.0
    """After how long without success in renewing it a launcher ends: before others take over, so that never two act."""
    retry_s: Annotated[float, Meta(gt=0)] = 2.0
    """Between two attempts to get or renew it."""

    def __post_init__(self) -> None:
        if not 1.5 * self.retry_s <= self.renew_deadline_s < self.lease_s:
            raise ValueError("must be so that 1.5 * retry_s <= renew_deadline_s < lease_s")


class TaskNetworkSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The NetworkPolicy that each allocation gets; see https://kubernetes.io/docs/concepts/services-networking/network-policies/."""

    policies: bool = False
    """Make one for each allocation, owned by its Job. The launcher needs the right to it wherever its tasks run."""
    api: tuple[dict[str, Any], ...] = ()
    """Where the pods of the api are, as peers of a policy. Tasks connect to them, and they to any port of tasks."""
    log_intake: tuple[dict[str, Any], ...] = ()
    """Where the pods of the log intake are, as peers of a policy."""
    service_ports: tuple[Annotated[int, Meta(ge=1, le=65535)], ...] = (8081,)
    """Ports of the pods of the api and of the log intake that tasks connect to."""
    dns_ports: tuple[Annotated[int, Meta(ge=1, le=65535)], ...] = (53,)
    """Ports on which tasks reach name servers, at any address, over UDP and TCP."""
    closed: tuple[str, ...] = ()
    """Ranges of addresses, such as ``10.0.0.0/8``, that tasks do not reach; they reach all others. It should name those
    of pods, Services, nodes and the API server, and the link-local one."""
    egress: tuple[dict[str, Any], ...] = ()
    """Further egress rules of the policy."""
    ingress: tuple[dict[str, Any], ...] = ()
    """Further ingress rules of the policy."""

    def __post_init__(self) -> None:
        for each in self.closed:
            try:
                ip_network(each)
            except ValueError as error:
                raise ValueError(f"closed: {error}; write a range of addresses such as 10.0.0.0/8") from error


class KubernetesSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kubeconfig: str | None = None
    """Path of a kubeconfig file; None uses the service account of the pod that the launcher runs in."""
    context: str | None = None
    """Context of the kubeconfig; None takes the current one."""
    cluster_id: str = ""
    """Id of this installation, as ``det master info`` shows it; required. Every object carries it, and nothing that
    does not is ever touched, so installations that share a namespace need different ones."""
    namespace: str = ""
    """Where the pool's tasks run; empty takes ``kubernetes_namespace`` of the pool, else ``default_namespace`` of the
    resource manager."""
    former_namespaces: tuple[str, ...] = ()
    """Where the pool's tasks ran before ``namespace`` was changed. Those that still run there are followed to their
    end, and launchers that still act there are waited for."""
    task_network: TaskNetworkSettings = TaskNetworkSettings()
    shipper: ShipperSettings = ShipperSettings()
    standby: StandbySettings = StandbySettings()
    wheels_dir: str | None = None
    """Directory of this machine with the wheels that tasks see in ``/opt/determined/wheels``; None when the images have
    the ``determined`` package already."""
    services: bool = False
    """Make a Service for every port of a task that is proxied, for gateways that do not reach pods directly."""
    priority_classes: Literal["auto", "assume", "off"] = "auto"
    """``auto`` looks which priority classes there are, and makes ``determined-priority-<n>`` when it may; ``assume``
    uses them without looking, for launchers without rights in the cluster; ``off`` leaves pods without one."""
    default_scheduler: Literal["", "coscheduler"] = ""
    """Scheduler of pods whose pod spec names none."""
    finished_job_ttl_s: Annotated[int, Meta(ge=0)] = 900
    """After which time the cluster may delete a finished Job of which the launcher did not take notice. How a task
    ended is known for that long after an outage of the launcher."""
    stuck_grace_s: Annotated[float, Meta(ge=0)] = 60.0
    """How long a pod may wait for what will probably never come (a Secret that is missing, a pod that is refused)."""
    gang_grace_s: Annotated[float, Meta(gt=0)] = 60.0
    """How long the pods of a task of several pods may take until each has a node. Then all of them are deleted, and the
    task is planned again. It may take as long as it likes while another scheduler than Kubernetes' own holds back all
    of its pods."""
    log_delivery_s: Annotated[float, Meta(ge=0)] = 60.0
    """How long the pods of an ended task are left alone, so that their sidecars deliver the last lines."""
    creators: Annotated[int, Meta(ge=1)] = 12
    """Allocations whose objects are made side by side."""
    max_requests: Annotated[int, Meta(ge=2)] = 16
    """Requests to the API server that are under way at once."""
    request_timeout_s: Annotated[float, Meta(gt=0)] = 30.0
    """How long the API server may take to answer."""
    namespace_idle_s: Annotated[float, Meta(gt=0)] = 600.0
    """How long the namespace of a workspace is watched after its last task has gone."""
    connect_patience_s: Annotated[float, Meta(ge=0)] = 30.0
    """How long to wait at the start for an API server that does not answer."""
    unreachable_hint: str = ""
    """Sentence that ends the message about an API server that does not answer, such as which network policy is in the
    way and where its ports are set. The chart gives one."""
    assumed_slots: Annotated[int, Meta(ge=0)] | None = None
    """Slots of the pool, for launchers that may not see nodes; None takes what the namespace's quota allows."""
