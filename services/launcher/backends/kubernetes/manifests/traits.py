"""Traits that all tasks of a pool share when they become Kubernetes objects; found out once, at the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from libs.cluster.config import SLOT_RESOURCE, SecurityConfig, SlotType
from libs.errors import InvalidRequest
from libs.events.orders import TaskSpec
from libs.podspec import NodeRules, asked_of_nodes, reference_violations, references_to_made, task_pod
from services.launcher.backends.kubernetes.settings import ShipperSettings, TaskNetworkSettings
from services.launcher.container.settings import TaskSettings

DEFAULT_SHM_BYTES: Final = 4 << 30
"""What ``shm_size`` says where nobody has said anything."""

Json = dict[str, Any]
Ships = Literal["fluent-bit", "builtin", "nothing"]


class PoolTraits(Struct, frozen=True, kw_only=True):
    pool: str
    cluster_id: str
    namespace: str
    slot_type: SlotType = "cuda"
    slot_resource: str = SLOT_RESOURCE["cuda"]
    """What a slot is to Kubernetes."""
    slot_cpu: float = 1.0
    """Cores of one slot, where slots are cores."""
    cpu_pod_spec: Json | None = None
    gpu_pod_spec: Json | None = None
    checkpoint_gc_pod_spec: Json | None = None
    security: SecurityConfig = SecurityConfig()
    node_rules: NodeRules | None = None
    """What is refused to users' pods that nobody has judged; None where nothing is."""
    default_scheduler: str = ""
    tasks: TaskSettings = TaskSettings()
    shipper: ShipperSettings = ShipperSettings()
    task_network: TaskNetworkSettings = TaskNetworkSettings()
    has_native_sidecars: bool = False
    """Whether init containers may stay beside the task (Kubernetes 1.29)."""
    wheels: str | None = None
    """Name of the ConfigMap that holds the wheels."""
    services: bool = False
    has_gateway: bool = False
    """Whether tasks are reached through a Gateway rather than at the addresses of their pods."""
    finished_job_ttl_s: int = 900
    scripts: Mapping[str, bytes] = {}
    sees_nodes: bool = True
    """Whether the launcher sees the nodes of the cluster. Otherwise nodes are named to it that it has assumed."""
    master_cert: bytes | None = None
    """Certificates that tasks trust; of one task, as they are read at its launch."""

    @property
    def ships(self) -> Ships:
        """What sends the output of tasks to the log intake."""
        return self.shipper.kind if self.tasks.log_intake_url else "nothing"

    def pod_defaults(self, spec: TaskSpec) -> Json | None:
        return self.gpu_pod_spec if spec.slots else self.cpu_pod_spec

    def allows(self, spec: TaskSpec, field: str) -> bool:
        """Whether the administrator's defaults for this task set a field of the pod to true."""
        pods = [self.pod_defaults(spec)]
        if spec.task_type == "CHECKPOINT_GC":
            pods.append(self.checkpoint_gc_pod_spec)
        return any(((pod or {}).get("spec") or {}).get(field) is True for pod in pods)


def check_pod_of_users(spec: TaskSpec, traits: PoolTraits) -> None:
    """Raise InvalidRequest for what users' part of a pod may not say in the namespace that it runs in.

    The api has judged it when it was submitted. References are judged again, because the namespace may have become
    that of a release since, with a workspace that was bound to it or a pool that was moved. What the pod asks of nodes
    is judged here only where the api had no pods to judge: what was accepted once restarts under any level.
    """
    users = spec.users_pod
    if users is None:
        return
    refused = list(reference_violations(users.pod, traits.security.namespace_rules(traits.namespace)))
    if not users.judged and traits.node_rules is not None:
        refused += asked_of_nodes(users.pod, traits.node_rules)
    if refused:
        raise InvalidRequest("\n".join(f"environment.pod_spec.{each}" for each in refused))


def user_pod(spec: TaskSpec, traits: PoolTraits) -> Json:
    """The pod that the task's user and the pool's administrator ask for. Raises InvalidRequest."""
    check_pod_of_users(spec, traits)
    own = spec.environment.pod_spec
    if found := references_to_made(own or {}):
        raise InvalidRequest(
            f"environment.pod_spec.{found[0].path} refers to {found[0]}, which is named like what is made for tasks"
        )
    return task_pod(spec.task_type, traits.pod_defaults(spec), own)
