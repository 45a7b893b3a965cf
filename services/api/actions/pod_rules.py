"""Refuses pods of users that name or join what is not theirs where they will run, when they are submitted.

What was stored before a rule came runs on: only what somebody submits now is looked at. Tasks that are processes have
no pods. What users wrote is kept with the task, for the launcher: it looks at references again, since the namespace
may be another one by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import structlog
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.config.image_names import image_refusal
from libs.db.tables.namespaces import workspace_namespace_bindings as bindings
from libs.errors import InvalidRequest
from libs.events.orders import UsersPod
from libs.podspec import (
    ADD_CAPABILITIES,
    NodeRules,
    asked_of_nodes,
    capability_refusals,
    changes_of_defaults,
    host_path_refusal,
    merge_pod,
    violations,
)
from libs.tasks.users_pods import users_pod

log = structlog.get_logger()

Layer = Mapping[str, Any]

POD_SPEC: Final = "environment.pod_spec"
NOT_FOR_USERS = ("automountServiceAccountToken", "enableServiceLinks")
"""What pods of tasks have only where the defaults of an administrator give it to them."""


async def check_pods_of_users(
    connection: AsyncConnection, cluster: ClusterConfig, *layers: Layer, workspace_id: int, pool: str, gpu: bool
) -> UsersPod:
    """What the pod specs of ``layers``, the lowest first, say together; it is to be stored with the task.

    layers  configurations, in normal form, that come from users: templates, what was submitted, what a workspace fixes
    gpu     whether the task has slots, and so gets the administrator's pod spec for slots
    Raises InvalidRequest for what they may not say in this workspace, and for images whose names cannot be any.
    """
    pod = _merged({}, layers)
    if not cluster.resource_manager.is_kubernetes:
        return users_pod(pod, judged=False)
    of_pool = cluster.defaults_of(pool)
    defaults = merge_pod(None, of_pool.gpu_pod_spec if gpu else of_pool.cpu_pod_spec)
    refused = list(_of_images(layers))
    if pod:
        namespace = await _namespace(connection, cluster, workspace_id, pool)
        refused += [*_of_namespace(cluster, pod, namespace), *_of_administrators(pod, defaults)]
    rules = cluster.node_rules
    asked = [*_of_nodes(rules, pod, layers), *_of_defaults(rules, defaults, layers)] if rules else []
    if cluster.security.pod_spec == "warn":
        if asked:
            log.warning("pod.not_baseline", workspace_id=workspace_id, pool=pool, asks=asked)
    else:
        refused += asked
    if refused:
        raise InvalidRequest("\n".join(refused))
    return users_pod(pod, judged=True, asks=asked)


def _of_images(layers: tuple[Layer, ...]) -> Iterator[str]:
    """Names of images that nodes would try in vain to pull."""
    for layer in layers:
        image = _section(layer, "environment").get("image")
        named = {f".{kind}": name for kind, name in image.items()} if isinstance(image, dict) else {"": image}
        for kind, name in named.items():
            if name and (said := image_refusal(str(name))) is not None:
                yield f"environment.image{kind}: {said}"


def _of_namespace(cluster: ClusterConfig, pod: Mapping[str, Any], namespace: str) -> Iterator[str]:
    yield from (f"{POD_SPEC}.{each}" for each in violations(pod, cluster.security.namespace_rules(namespace)))


def _of_administrators(pod: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    given = _section(defaults, "spec")
    for field in NOT_FOR_USERS:
        if _section(pod, "spec").get(field) and not given.get(field):
            yield f"{POD_SPEC}.spec.{field} is for task_container_defaults of the cluster configuration to allow"


def _of_nodes(rules: NodeRules, pod: Mapping[str, Any], layers: tuple[Layer, ...]) -> list[str]:
    """What the layers ask of nodes, in pod specs and beside them."""
    found = [f"{POD_SPEC}.{each}" for each in asked_of_nodes(pod, rules)]
    for layer in layers:
        found += [
            f"{path} {said}"
            for path, directory in _directories(layer)
            if (said := host_path_refusal(directory, rules)) is not None
        ]
        added = _section(layer, "environment").get("add_capabilities") or ()
        found += [f"{ADD_CAPABILITIES} {each}" for each in capability_refusals(added, rules)]
    return found


def _of_defaults(rules: NodeRules, defaults: dict[str, Any], layers: tuple[Layer, ...]) -> Iterator[str]:
    """What the layers change of an administrator's containers and volumes, or use otherwise than the administrator."""
    for each in changes_of_defaults(defaults, _merged(defaults, layers), rules):
        yield f"{POD_SPEC}.{each}"


def _merged(below: dict[str, Any], layers: tuple[Layer, ...]) -> dict[str, Any]:
    pod = below
    for layer in layers:
        pod = merge_pod(pod, _section(layer, "environment").get("pod_spec"))
    return pod


def _directories(layer: Layer) -> Iterator[tuple[str, str]]:
    """Directories of nodes that a configuration mounts without a pod spec, with where it says so."""
    for index, mount in enumerate(layer.get("bind_mounts") or ()):
        yield f"bind_mounts[{index}].host_path", str(mount["host_path"])
    storage = _section(layer, "checkpoint_storage")
    if storage.get("host_path"):
        yield "checkpoint_storage.host_path", str(storage["host_path"])


async def _namespace(connection: AsyncConnection, cluster: ClusterConfig, workspace_id: int, pool: str) -> str:
    """Where tasks of a workspace run in a pool: where the workspace is bound to, or else the pool's namespace."""
    manager = cluster.resource_manager
    bound = select(bindings.c.namespace).where(
        bindings.c.workspace_id == workspace_id, bindings.c.cluster_name == manager.cluster_name
    )
    found = (await connection.execute(bound)).scalar_one_or_none()
    of_pool = cluster.pool(pool)
    return found or (of_pool.kubernetes_namespace if of_pool else "") or manager.default_namespace


def _section(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = holder.get(name)
    return found if isinstance(found, dict) else {}
