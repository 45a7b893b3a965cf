"""Upgrade a legacy ``master.yaml`` to the keys of ``ClusterConfig``. Pure.

Files that administrators have must work as they stand. Nothing is passed over in silence: each key that is not taken as
it was written leaves a warning. Source: docs/reference/kubernetes.md 14 and 15; docs/reference/scheduling.md 2;
docs/reference/platform.md 18.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, structs

from libs.cluster.config import PoolConfig
from libs.errors import InvalidRequest

Object = dict[str, Any]

ELSEWHERE: Final = {
    "db": "the database is in the settings of each service: database",
    "log": "the level of a service is in its settings: telemetry.log_level",
    "port": "it is in the settings of the api: http.port",
    "root": "the folder with the built files of a page is web.root",
    "enable_cors": "it is in the settings of the api: http.enable_cors",
    "telemetry": "nothing is sent to anybody",
    "logging": "task logs are kept by the logs service",
    "retention_policy": "it is in the settings of the logs service: retention",
    "observability": "every service serves /metrics on its telemetry.status_port",
    "cache": "nothing is cached on disk",
    "ui_customization": "there is no WebUI",
    "integrations": "there are none",
    "saml": "users log in with a password, or at a provider of OpenID Connect: oidc",
    "det_cloud": "there is nothing like it",
    "__internal": "there is nothing like it",
}
"""Top-level keys -> where to look instead."""
_ADDRESS: Final = "the address that tasks are given is in the settings of each launcher: tasks.master_url"
_OF_MANAGER: Final = {
    "master_service_name": _ADDRESS,
    "determined_master_host": _ADDRESS,
    "determined_master_ip": _ADDRESS,
    "determined_master_port": _ADDRESS,
    "determined_master_scheme": _ADDRESS,
    "kubeconfig_path": "it is in the settings of each launcher: kubernetes.kubeconfig",
    "fluent": "what ships log lines is in the settings of each launcher: kubernetes.shipper",
    "leave_kubernetes_resources": "what is left of a task is always removed",
    "require_authentication": "there are no agents",
    "client_ca": "there are no agents",
}
_OF_POOL: Final = {
    "provider": "nodes come from the cluster",
    "agent_reconnect_wait": "there are no agents",
    "agent_reattach_enabled": "running tasks are always found again",
}
_OF_DEFAULTS: Final = {"slurm": "there is no such resource manager", "pbs": "there is no such resource manager"}
_RENAMED: Final = {
    "name": "cluster_name",
    "namespace": "default_namespace",
    "default_cpu_resource_pool": "default_aux_resource_pool",
    "default_gpu_resource_pool": "default_compute_resource_pool",
}
"""Keys of resource_manager -> as they are called now."""
_POOL_KEYS: Final = frozenset(field.encode_name for field in structs.fields(PoolConfig))
_WITH_LEVELS: Final = (None, "priority", "kubernetes")
_NATIVE: Final = "gangs start whole, and pods are left to Kubernetes' own scheduler"


class ConfigWarning(Struct, frozen=True):
    """Something that was not taken as it was written."""

    key: str
    says: str


def upgrade(document: Mapping[str, Any]) -> tuple[Object, tuple[ConfigWarning, ...]]:
    """The document with the keys of ``ClusterConfig``, and what an administrator should know of the difference.

    Keys that are null count as not given. What has the wrong shape is left for the reader of the result to refuse.
    Raises InvalidRequest for what cannot be had here.
    """
    found: Object = _given(document)
    warnings: list[ConfigWarning] = []
    warnings += _dropped(found, ELSEWHERE)
    _refuse_more_managers(found)
    found.pop("additional_resource_managers", None)
    if isinstance(manager := found.get("resource_manager"), dict):
        found["resource_manager"], said = _manager(_given(manager))
        warnings += said
    if found.get("resource_pools") == []:
        del found["resource_pools"]
    if isinstance(pools := found.get("resource_pools"), list):
        read = [_pool(pool, index) if isinstance(pool, dict) else (pool, []) for index, pool in enumerate(pools)]
        found["resource_pools"] = [pool for pool, _ in read]
        warnings += [warning for _, said in read for warning in said]
    if isinstance(defaults := found.get("task_container_defaults"), dict):
        found["task_container_defaults"] = own = _given(defaults)
        warnings += _dropped(own, _OF_DEFAULTS, "task_container_defaults")
    if isinstance(oidc := found.get("oidc"), dict):
        found["oidc"] = _given(oidc)
    if isinstance(scim := found.get("scim"), dict):
        found["scim"] = scim = _given(scim)
        if isinstance(auth := scim.get("auth"), dict):
            scim["auth"] = _given(auth)
    if isinstance(security := found.get("security"), dict):
        found["security"], said = _security(_given(security))
        warnings += said
    return found, tuple(warnings)


def _given(section: Mapping[str, Any]) -> Object:
    return {key: value for key, value in section.items() if value is not None}


def _dropped(section: Object, known: Mapping[str, str], place: str = "") -> Iterator[ConfigWarning]:
    """Takes the ``known`` keys out of a section."""
    prefix = f"{place}." if place else ""
    for key in [key for key in section if key in known]:
        del section[key]
        yield ConfigWarning(f"{prefix}{key}", f"ignored: {known[key]}")


def _manager(manager: Object) -> tuple[Object, list[ConfigWarning]]:
    place = "resource_manager"
    warnings = list(_dropped(manager, _OF_MANAGER, place))
    for old, new in _RENAMED.items():
        if old not in manager:
            continue
        value = manager.pop(old)
        if new in manager:
            warnings.append(ConfigWarning(f"{place}.{old}", f"ignored: {new} is given as well"))
        else:
            manager[new] = value
            warnings.append(ConfigWarning(f"{place}.{old}", f"read as {new}, its present name"))
    if manager.get("type") == "agent":
        manager["type"] = "process"
        warnings.append(
            ConfigWarning(
                f"{place}.type", "agent is read as process: there are no agents, tasks are processes of launchers"
            )
        )
    if manager.get("no_default_resource_pools") is True:
        manager |= {"default_compute_resource_pool": "", "default_aux_resource_pool": ""}
    _look_at_scheduler(manager.get("scheduler"), f"{place}.scheduler")
    warnings += _default_scheduler(manager)
    return manager, warnings


def _default_scheduler(manager: Object) -> Iterator[ConfigWarning]:
    """Source: docs/reference/kubernetes.md 15; docs/reference/scheduling.md 16 ("aliases of native modes")."""
    match manager.get("default_scheduler"):
        case None | "" | "coscheduler":
            return
        case "preemption":
            manager["default_scheduler"] = ""
            yield ConfigWarning("resource_manager.default_scheduler", _preempting(manager))
        case "priority":
            raise InvalidRequest(
                "resource_manager.default_scheduler: priority is deprecated; leave it out, and jobs are started by "
                "priority"
            )
        case _:
            raise InvalidRequest("only blank or ``coscheduler`` values allowed for Kubernetes scheduler")


def _preempting(manager: Object) -> str:
    """Let the queue preempt, as the scheduler of pods of that name did, unless the file says how to plan it."""
    scheduler = manager.get("scheduler")
    if scheduler is None:
        manager["scheduler"] = {"type": "priority", "preemption": True}
    elif not isinstance(scheduler, dict) or "preemption" in scheduler or scheduler.get("type") not in _WITH_LEVELS:
        return f"preemption is ignored: resource_manager.scheduler says what the queue does; {_NATIVE}"
    else:
        manager["scheduler"] = {**scheduler, "preemption": True}
    return (
        f"preemption is read as resource_manager.scheduler.preemption: true, for pools without a scheduler; {_NATIVE}"
    )


def _pool(pool: Object, index: int) -> tuple[Object, list[ConfigWarning]]:
    place = f"resource_pools[{index}]"
    found = _given(pool)
    warnings = list(_dropped(found, _OF_POOL, place))
    if "max_cpu_containers_per_agent" in found:
        limit = found.pop("max_cpu_containers_per_agent")
        # -1 is how old files say that they do not say.
        if limit != -1:
            found["max_aux_containers_per_agent"] = limit
        said = "ignored" if limit == -1 else "read as max_aux_containers_per_agent, its present name"
        warnings.append(ConfigWarning(f"{place}.max_cpu_containers_per_agent", said))
    warnings += _dropped(found, dict.fromkeys(found.keys() - _POOL_KEYS, "nothing of this name is known"), place)
    if isinstance(defaults := found.get("task_container_defaults"), dict):
        found["task_container_defaults"] = own = _given(defaults)
        warnings += _dropped(own, _OF_DEFAULTS, f"{place}.task_container_defaults")
    _look_at_scheduler(found.get("scheduler"), f"{place}.scheduler")
    return found, warnings


def _security(security: Object) -> tuple[Object, list[ConfigWarning]]:
    authz = security.get("authz")
    if isinstance(authz, dict):
        security["authz"] = authz = _given(authz)
        if isinstance(role := authz.get("workspace_creator_assign_role"), dict):
            authz["workspace_creator_assign_role"] = _given(role)
    return security, []


def _look_at_scheduler(scheduler: Any, place: str) -> None:
    if isinstance(scheduler, dict) and scheduler.get("type") == "round_robin":
        raise InvalidRequest(
            f"{place}.type: round_robin is not supported; use priority, with the same priority for all jobs"
        )


def _refuse_more_managers(document: Mapping[str, Any]) -> None:
    """There is one resource manager here, and each of its pools may be in a cluster of its own."""
    more = document.get("additional_resource_managers") or []
    if not more:
        return
    sections = [document, *more] if isinstance(more, list) else []
    if len(sections) < 2 or not all(isinstance(section, dict) for section in sections):
        raise InvalidRequest("additional_resource_managers: a list of {resource_manager, resource_pools} is expected")
    managers = [section.get("resource_manager") or {} for section in sections]
    for manager, section in zip(managers[1:], sections[1:], strict=True):
        if manager.get("type") != "kubernetes":
            raise InvalidRequest("additional_resource_managers only supports resource managers of type: kubernetes")
        if not section.get("resource_pools"):
            raise InvalidRequest("for additional_resource_managers, you must specify at least one resource pool")
    if name := _first_duplicate(manager.get("cluster_name") or manager.get("name", "default") for manager in managers):
        raise InvalidRequest(f"resource manager has a duplicate name: {name}")
    pools = (pool for section in sections for pool in section.get("resource_pools") or [{"pool_name": "default"}])
    if name := _first_duplicate(pool.get("pool_name") for pool in pools):
        raise InvalidRequest(
            f"resource pool has a duplicate name: {name}; names are unique across all resource managers"
        )
    if any(manager.get("type") == "kubernetes" and manager.get("max_slots_per_pod") is None for manager in managers):
        raise InvalidRequest("must provide resource_manager.max_slots_per_pod")
    raise InvalidRequest(
        "additional_resource_managers: only one resource manager is supported; name the pools of all clusters in "
        "resource_pools, and give the launcher of each the kubeconfig of its cluster (kubernetes.kubeconfig)"
    )


def _first_duplicate(names: Iterator[Any]) -> Any:
    seen = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
