"""The cluster configuration file (spec/platform.md 18, spec/scheduling.md 2): one YAML file that all services read.

The keys are those administrators know from ``master.yaml``. What concerns one service only (ports, database, bus) is in
that service's settings instead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import yaml
from msgspec import Meta, Struct, field

from libs.config import (
    InvalidConfig,
    check_failed,
    failed_pod_checks,
    merge_task_container_defaults,
    task_container_defaults_as_config,
)
from libs.config.checks import FailedCheck
from libs.config.environment import pod_spec
from libs.config.problems import listing
from libs.errors import InvalidRequest
from libs.podspec import InvalidPodPatch, merge_pod

SlotType = Literal["cpu", "cuda", "rocm"]
Priority = Annotated[int, Meta(ge=1, le=99)]

POD_SPECS: Final = ("cpu_pod_spec", "gpu_pod_spec", "checkpoint_gc_pod_spec")
"""Keys of task_container_defaults."""
MIN_GATEWAY_PORT: Final = 1025
MAX_PORT: Final = 65535
_LABEL_LIKE: Final = re.compile(r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")


class SchedulerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Literal["priority", "fair_share", "kubernetes"] = "priority"
    preemption: bool = False
    default_priority: Priority = 42
    fitting_policy: Literal["best", "worst"] = "best"
    allow_heterogeneous_fits: bool = False

    @property
    def preempts(self) -> bool:
        """May a job that can be preempted lose its slots to another one? (spec/scheduling.md 2.3)"""
        return self.type == "fair_share" or self.preemption


class KubernetesDefaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    max_slots_per_pod: Annotated[int, Meta(ge=0)] | None = None


class TaskContainerDefaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Merged below the configuration of every task."""

    image: Any = None
    force_pull_image: bool = False
    registry_auth: dict[str, Any] | None = None
    shm_size_bytes: Annotated[int, Meta(ge=0)] = 4294967296
    network_mode: str = "bridge"
    dtrain_network_interface: str = ""
    nccl_port_range: str = ""
    gloo_port_range: str = ""
    cpu_pod_spec: dict[str, Any] | None = None
    gpu_pod_spec: dict[str, Any] | None = None
    checkpoint_gc_pod_spec: dict[str, Any] | None = None
    environment_variables: Any = None
    add_capabilities: list[str] = field(default_factory=list)
    drop_capabilities: list[str] = field(default_factory=list)
    devices: list[Any] = field(default_factory=list)
    bind_mounts: list[dict[str, Any]] = field(default_factory=list)
    work_dir: str | None = None
    startup_hook: str = ""
    log_policies: list[dict[str, Any]] = field(default_factory=list)
    preemption_timeout: Annotated[int, Meta(gt=0)] = 3600
    kubernetes: KubernetesDefaults = KubernetesDefaults()


class PoolTaskContainerDefaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a pool says of them; None leaves a field to the cluster, so that nothing is reset that is not mentioned."""

    image: Any = None
    force_pull_image: bool | None = None
    registry_auth: dict[str, Any] | None = None
    shm_size_bytes: Annotated[int, Meta(ge=0)] | None = None
    network_mode: str | None = None
    dtrain_network_interface: str | None = None
    nccl_port_range: str | None = None
    gloo_port_range: str | None = None
    cpu_pod_spec: dict[str, Any] | None = None
    gpu_pod_spec: dict[str, Any] | None = None
    checkpoint_gc_pod_spec: dict[str, Any] | None = None
    environment_variables: Any = None
    add_capabilities: list[str] | None = None
    drop_capabilities: list[str] | None = None
    devices: list[Any] | None = None
    bind_mounts: list[dict[str, Any]] | None = None
    work_dir: str | None = None
    startup_hook: str | None = None
    log_policies: list[dict[str, Any]] | None = None
    preemption_timeout: Annotated[int, Meta(gt=0)] | None = None
    kubernetes: KubernetesDefaults | None = None


class PoolConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pool_name: Annotated[str, Meta(min_length=1)]
    description: str = ""
    scheduler: SchedulerConfig | None = None
    max_aux_containers_per_agent: Annotated[int, Meta(ge=0)] = 100
    task_container_defaults: PoolTaskContainerDefaults | None = None
    kubernetes_namespace: str = ""


class SlotRequests(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cpu: float = 0.0


class TaskGatewayConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Gateway (gateway.networking.k8s.io/v1) through which tasks are reached where their pods cannot be."""

    gateway_name: str = ""
    gateway_namespace: str = ""
    gateway_ip: str = ""
    """Where the Gateway is reached; may be the name of a host."""
    gateway_port_range_start: int = 32768
    gateway_port_range_end: int = 65535
    """Of listeners for tasks; both ends may be used."""


class ResourceManagerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Literal["kubernetes", "process"] = "process"
    cluster_name: str = "default"
    scheduler: SchedulerConfig | None = None
    default_compute_resource_pool: str = "default"
    default_aux_resource_pool: str = "default"
    default_namespace: str = "default"
    max_slots_per_pod: Annotated[int, Meta(ge=0)] | None = None
    slot_type: Literal["cpu", "cuda", "rocm", "gpu"] = "cpu"
    slot_resource_requests: SlotRequests = SlotRequests()
    internal_task_gateway: TaskGatewayConfig | None = None
    metadata: dict[str, str] = field(default_factory=dict)


class AgentIdentity(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user: str = "root"
    uid: int = 0
    group: str = "root"
    gid: int = 0


class SshConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key_type: Literal["ED25519", "RSA", "ECDSA"] = "ED25519"
    rsa_key_size: Annotated[int, Meta(ge=1024, le=16383)] = 4096


class TokenConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of access tokens (``det token create``); -1 is unlimited."""

    max_lifespan_days: Annotated[int, Meta(ge=-1)] = 30
    default_lifespan_days: Annotated[int, Meta(ge=-1)] = 30


class SecurityConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default_task: AgentIdentity = AgentIdentity()
    initial_user_password: str = ""
    ssh: SshConfig = SshConfig()
    token: TokenConfig = TokenConfig()


class ClusterConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cluster_name: str = ""
    resource_manager: ResourceManagerConfig = ResourceManagerConfig()
    resource_pools: tuple[PoolConfig, ...] = (PoolConfig(pool_name="default"),)
    task_container_defaults: TaskContainerDefaults = TaskContainerDefaults()
    checkpoint_storage: dict[str, Any] | None = None
    launch_error: bool = True
    security: SecurityConfig = SecurityConfig()
    feature_switches: tuple[str, ...] = ()

    def pool(self, name: str) -> PoolConfig | None:
        return next((pool for pool in self.resource_pools if pool.pool_name == name), None)

    @property
    def slot_type(self) -> SlotType:
        slot_type = self.resource_manager.slot_type
        return "cuda" if slot_type == "gpu" else slot_type

    def scheduler_of(self, pool: PoolConfig) -> SchedulerConfig:
        """A pool has a scheduler of its own or, whole, that of the resource manager (spec/scheduling.md 2.3)."""
        return pool.scheduler or self.resource_manager.scheduler or SchedulerConfig()

    def default_priority(self, pool_name: str) -> int:
        """Priority of a job that does not say: the pool's, the resource manager's, or that of its kind."""
        pool = self.pool(pool_name)
        if pool and pool.scheduler:
            return pool.scheduler.default_priority
        if self.resource_manager.scheduler:
            return self.resource_manager.scheduler.default_priority
        return 50 if self.resource_manager.type == "kubernetes" else 42

    def max_slots_per_pod(self, pool_name: str) -> int | None:
        """Slots that fit into one pod of the pool; None when nothing limits it."""
        pool = self.pool(pool_name)
        own = pool.task_container_defaults.kubernetes if pool and pool.task_container_defaults else None
        candidates = (
            own.max_slots_per_pod if own else None,
            self.resource_manager.max_slots_per_pod,
            self.task_container_defaults.kubernetes.max_slots_per_pod,
        )
        return next((candidate for candidate in candidates if candidate is not None), None)

    def defaults_of(self, pool_name: str) -> TaskContainerDefaults:
        """The defaults of the pool over those of the cluster (spec/scheduling.md 2.2; spec/kubernetes.md 6.1)."""
        pool = self.pool(pool_name)
        if pool is None or pool.task_container_defaults is None:
            return self.task_container_defaults
        merged = merge_task_container_defaults(
            msgspec.to_builtins(pool.task_container_defaults), msgspec.to_builtins(self.task_container_defaults)
        )
        return msgspec.convert(merged, TaskContainerDefaults)


def load_cluster_config(path: Path | None) -> ClusterConfig:
    """The configuration in ``path``, or that of a single process pool when there is no file.

    Raises InvalidRequest that names the key.
    """
    if path is None:
        return ClusterConfig()
    try:
        document = yaml.safe_load(path.read_text()) or {}
        config = msgspec.convert(document, ClusterConfig, strict=False)
    except yaml.YAMLError as error:
        raise InvalidRequest(f"{path} is not valid YAML: {error}") from error
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{path}: {error}") from error
    except OSError as error:
        raise InvalidRequest(f"cannot read the cluster configuration: {error}") from error
    _check(config)
    return config


def _check(config: ClusterConfig) -> None:
    names = [pool.pool_name for pool in config.resource_pools]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"resource pool has a duplicate name: {name}")
    defaults = _all_defaults(config)
    if failures := [failure for key, each in defaults.items() for failure in _failed_pod_checks(each, key)]:
        raise InvalidRequest(check_failed(failures))
    for key, each in defaults.items():
        _check_defaults(each, key)
    manager = config.resource_manager
    for key in ("default_compute_resource_pool", "default_aux_resource_pool"):
        if (name := getattr(manager, key)) not in names:
            raise InvalidRequest(f"resource_manager.{key}: there is no resource pool named {name!r}")
    if manager.internal_task_gateway is not None:
        _check_gateway(manager.internal_task_gateway)


def _check_gateway(gateway: TaskGatewayConfig) -> None:
    """Source: spec/kubernetes.md 4."""
    found = []
    for key in ("gateway_name", "gateway_namespace"):
        if not _LABEL_LIKE.fullmatch(value := getattr(gateway, key)):
            found.append(
                f"invalid {key}: {value!r} is not 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at "
                "both ends"
            )
    if not gateway.gateway_ip.strip():
        found.append("invalid gateway_ip: it is empty")
    for key in ("gateway_port_range_start", "gateway_port_range_end"):
        if not MIN_GATEWAY_PORT <= (port := getattr(gateway, key)) <= MAX_PORT:
            found.append(f"invalid {key}: {port} is not within {MIN_GATEWAY_PORT} to {MAX_PORT}")
    if gateway.gateway_port_range_start >= gateway.gateway_port_range_end:
        # Equal ends are refused too, whatever the words say.
        found.append("gateway_port_range_start must be less than or equal to gateway_port_range_end")
    if found:
        raise InvalidRequest(f"resource_manager.internal_task_gateway: {'; '.join(found)}")


def _all_defaults(config: ClusterConfig) -> dict[str, TaskContainerDefaults | PoolTaskContainerDefaults]:
    """Those of the cluster and of its pools, by the place where they are written."""
    of_pools = {
        f"resource_pools[{index}].task_container_defaults": pool.task_container_defaults
        for index, pool in enumerate(config.resource_pools)
        if pool.task_container_defaults is not None
    }
    return {"task_container_defaults": config.task_container_defaults, **of_pools}


def _failed_pod_checks(defaults: TaskContainerDefaults | PoolTaskContainerDefaults, key: str) -> list[FailedCheck]:
    pods = {kind: getattr(defaults, kind) for kind in POD_SPECS}
    return [
        failure
        for kind, pod in pods.items()
        if pod is not None
        for failure in failed_pod_checks(pod, f"root.{key}.{kind}")
    ]


def _check_defaults(defaults: TaskContainerDefaults | PoolTaskContainerDefaults, key: str) -> None:
    """What makes no sense here would make every experiment fail later."""
    for kind in POD_SPECS:
        if (pod := getattr(defaults, kind)) is not None:
            _check_pod_spec(pod, f"{key}.{kind}")
    try:
        for gpu in (False, True):
            task_container_defaults_as_config(msgspec.to_builtins(defaults), gpu=gpu)
    except InvalidConfig as error:
        raise InvalidRequest(f"{key}: {error}") from error


def _check_pod_spec(pod: dict[str, Any], key: str) -> None:
    """Whether something can be merged over it."""
    if problems := pod_spec(pod, key).problems:
        raise InvalidRequest(listing(problems))
    try:
        clean = merge_pod(None, pod)
        merge_pod(clean, clean)  # looks at the merge keys of all lists
    except InvalidPodPatch as error:
        raise InvalidRequest(f"{key}: {error}") from error
