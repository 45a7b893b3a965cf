"""Checks a cluster configuration for what makes no sense, at the start rather than when a task fails of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from libs.cluster.config import (
    MAX_PORT,
    SLOT_TYPES,
    ClusterConfig,
    PoolConfig,
    ResourceManagerConfig,
    ScimConfig,
    TaskContainerDefaults,
    TaskGatewayConfig,
    TasksConfig,
    TlsConfig,
    TopologyConfig,
    WebhooksConfig,
)
from libs.cluster.oidc import check_oidc
from libs.config import InvalidConfig, check_failed, failed_pod_checks, task_container_defaults_as_config
from libs.config.checks import FailedCheck
from libs.config.parts.environment import pod_spec
from libs.errors import InvalidRequest
from libs.outbound.addresses import networks
from libs.outbound.destinations import destinations
from libs.podspec import InvalidPodPatch, merge_pod
from libs.shapes.problems import listing
from libs.webhooks.addresses import problem_of_url

POD_SPECS: Final = ("cpu_pod_spec", "gpu_pod_spec", "checkpoint_gc_pod_spec")
"""Keys of task_container_defaults."""
MIN_GATEWAY_PORT: Final = 1025
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9](?:[-.A-Za-z0-9]*[A-Za-z0-9])?(?::[0-9]{1,5})?/?")
_DOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*")
_LABEL_LIKE: Final = re.compile(r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")


def check(config: ClusterConfig) -> None:
    """Raises InvalidRequest that names the key, in the words of docs/reference/kubernetes.md 7 and 15 where it has
    some."""
    _check_pools(config)
    _check_slots(config)
    _check_topologies(config)
    defaults = _all_defaults(config)
    if failures := [failure for key, each in defaults.items() for failure in _failed_pod_checks(each, key)]:
        raise InvalidRequest(check_failed(failures))
    for key, each in defaults.items():
        _check_defaults(each, key)
    if config.resource_manager.internal_task_gateway is not None:
        _check_gateway(config.resource_manager.internal_task_gateway)
    _check_tls(config.security.tls)
    _check_storage_addresses(config.security.storage_addresses or ())
    _check_webhooks(config.webhooks)
    check_oidc(config.oidc)
    _check_tasks(config.tasks)
    _check_scim(config.scim)


def check_slot_requests(manager: ResourceManagerConfig, *, slots_are_cores: bool) -> None:
    """Raises InvalidRequest when slots are cores, and nobody says how many."""
    if slots_are_cores and manager.slot_resource_requests.cpu <= 0:
        raise InvalidRequest("slot_resource_requests.cpu must be > 0")


def _check_pools(config: ClusterConfig) -> None:
    names = [pool.pool_name for pool in config.resource_pools]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"resource pool has a duplicate name: {name}")
    for pool in config.resource_pools:
        if (usual := pool.default_time_limit_s) and (most := pool.max_time_limit_s) and usual > most:
            raise InvalidRequest(f"resource pool {pool.pool_name}: default_time_limit must not be above max_time_limit")
        if pool.growth is not None and not config.resource_manager.is_kubernetes:
            raise InvalidRequest(f"resource pool {pool.pool_name}: growth needs a resource_manager of type kubernetes")
    manager = config.resource_manager
    if manager.no_default_resource_pools:
        return
    for key in ("default_compute_resource_pool", "default_aux_resource_pool"):
        if (name := getattr(manager, key)) not in names:
            raise InvalidRequest(f"resource_manager.{key}: there is no resource pool named {name!r}")


def _check_webhooks(webhooks: WebhooksConfig) -> None:
    if webhooks.base_url and problem_of_url(webhooks.base_url) is not None:
        raise InvalidRequest("webhooks.base_url: must be a URL, as in https://resolute.example.com")
    try:
        networks(webhooks.allowed_networks)
    except ValueError as error:
        raise InvalidRequest(f"webhooks.allowed_networks: {error}") from error


def _check_storage_addresses(texts: Sequence[str]) -> None:
    try:
        destinations(texts)
    except ValueError as error:
        raise InvalidRequest(f"security.storage_addresses: {error}") from error


def _check_tasks(tasks: TasksConfig) -> None:
    for key, example in (("address", "https://tasks.det.example.com"), ("main_address", "https://det.example.com")):
        value = getattr(tasks, key)
        if (value or tasks.address or tasks.main_address) and not _ORIGIN.fullmatch(value):
            raise InvalidRequest(f"tasks.{key}: must be a scheme and a host name, as in {example}")
    if tasks.address and urlsplit(tasks.address).hostname == urlsplit(tasks.main_address).hostname:
        raise InvalidRequest("tasks.address: must have another host name than tasks.main_address: cookies ignore ports")


def _check_scim(scim: ScimConfig) -> None:
    if not scim.enabled or scim.auth.type == "oauth":
        return
    for key in ("username", "password"):
        if not getattr(scim.auth, key):
            raise InvalidRequest(f"scim.auth.{key}: required for auth.type basic, or anybody could make users")
    if ":" in scim.auth.username:
        raise InvalidRequest("scim.auth.username: HTTP cannot send a name with a colon")


def _check_slots(config: ClusterConfig) -> None:
    manager = config.resource_manager
    if manager.slot_type is not None and manager.slot_type not in SLOT_TYPES:
        raise InvalidRequest("slot_type must be cuda, cpu, or rocm")
    for pool in config.resource_pools:
        _check_slot_resource(pool, config)
    of_manager, of_defaults = manager.max_slots_per_pod, config.task_container_defaults.kubernetes.max_slots_per_pod
    of_pools = [
        own.kubernetes.max_slots_per_pod for pool in config.resource_pools if (own := pool.own_defaults) is not None
    ]
    for slots in (of_manager, of_defaults, *of_pools):
        if slots is not None and slots < 0:
            raise InvalidRequest(f"max_slots_per_pod must be >= 0 got {slots}")
    if not manager.is_kubernetes:
        return
    if (of_manager is None) == (of_defaults is None):
        raise InvalidRequest(
            "must provide exactly one of resource_manager.max_slots_per_pod and "
            "task_container_defaults.kubernetes.max_slots_per_pod"
        )
    check_slot_requests(manager, slots_are_cores=config.slot_type == "cpu")


def _check_slot_resource(pool: PoolConfig, config: ClusterConfig) -> None:
    """Source: https://kubernetes.io/docs/tasks/administer-cluster/extended-resource-node/."""
    place, name = f"resource_pools[{pool.pool_name}].slot_resource", pool.slot_resource
    if not name:
        return
    if not config.resource_manager.is_kubernetes or config.slot_type == "cpu":
        raise InvalidRequest(f"{place}: only a slot that is a device of a Kubernetes node has a resource")
    domain, slash, rest = name.partition("/")
    is_extended = slash and _DOMAIN.fullmatch(domain) and _LABEL_LIKE.fullmatch(rest)
    if not is_extended or re.fullmatch(r"(.*\.)?kubernetes\.io", domain):
        raise InvalidRequest(f"{place}: {name!r} is no extended resource, such as nvidia.com/mig-1g.5gb")


def _check_topologies(config: ClusterConfig) -> None:
    """Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/."""
    of_pools = {f"resource_pools[{pool.pool_name}]": pool.scheduler for pool in config.resource_pools}
    for owner, scheduler in {"resource_manager": config.resource_manager.scheduler, **of_pools}.items():
        if scheduler is not None and scheduler.topology is not None:
            _check_topology(scheduler.topology, f"{owner}.scheduler.topology", config)


def _check_topology(topology: TopologyConfig, place: str, config: ClusterConfig) -> None:
    if not config.resource_manager.is_kubernetes:
        raise InvalidRequest(f"{place}: only nodes of Kubernetes have labels")
    if not topology.levels:
        raise InvalidRequest(f"{place}.levels: must name a label of nodes, such as topology.kubernetes.io/zone")
    for level in topology.levels:
        domain, slash, name = level.rpartition("/")
        if not _LABEL_LIKE.fullmatch(name) or (slash and not _DOMAIN.fullmatch(domain)):
            raise InvalidRequest(f"{place}.levels: {level!r} is no key of a label, such as topology.kubernetes.io/zone")
        if topology.levels.count(level) > 1:
            raise InvalidRequest(f"{place}.levels: {level} is there twice")
    default = topology.default
    if default.preferred and default.required:
        raise InvalidRequest(f"{place}.default: must name one level, either as preferred or as required")
    for kind, level in (("preferred", default.preferred), ("required", default.required)):
        if level and level not in topology.levels:
            raise InvalidRequest(f"{place}.default.{kind}: {level} is none of the levels: {', '.join(topology.levels)}")


def _check_gateway(gateway: TaskGatewayConfig) -> None:
    """Source: docs/reference/kubernetes.md 4."""
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


def _all_defaults(config: ClusterConfig) -> dict[str, TaskContainerDefaults]:
    """Those of the cluster and of its pools, by the place where they are written."""
    of_pools = {
        f"resource_pools[{index}].task_container_defaults": own
        for index, pool in enumerate(config.resource_pools)
        if (own := pool.own_defaults) is not None
    }
    return {"task_container_defaults": config.task_container_defaults, **of_pools}


def _failed_pod_checks(defaults: TaskContainerDefaults, key: str) -> list[FailedCheck]:
    pods = {kind: getattr(defaults, kind) for kind in POD_SPECS}
    return [
        failure
        for kind, pod in pods.items()
        if pod is not None
        for failure in failed_pod_checks(pod, f"root.{key}.{kind}")
    ]


def _check_defaults(defaults: TaskContainerDefaults, key: str) -> None:
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


def _check_tls(tls: TlsConfig) -> None:
    if bool(tls.cert) != bool(tls.key):
        raise InvalidRequest("security.tls: cert and key are needed together, or neither of them")
    if tls.ca and not tls.cert:
        raise InvalidRequest("security.tls.ca needs cert and key, which the authorities sign")
