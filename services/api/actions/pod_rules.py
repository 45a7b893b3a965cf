"""Refuses pods of users that name or join what is not theirs where they will run, when they are submitted.

What was stored before a rule came runs on: only what somebody submits now is looked at. Tasks that are processes have
no pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.db.tables.namespaces import workspace_namespace_bindings as bindings
from libs.errors import InvalidRequest
from libs.podspec import NamespaceRules, merge_pod, violations

Layer = Mapping[str, Any]

NOT_FOR_USERS = ("automountServiceAccountToken", "enableServiceLinks")
"""What pods of tasks have only where the defaults of an administrator give it to them."""


async def check_pods_of_users(
    connection: AsyncConnection, cluster: ClusterConfig, *layers: Layer, workspace_id: int, pool: str, gpu: bool
) -> None:
    """Raise InvalidRequest for what the pod specs of ``layers``, the lowest first, may not say in this workspace.

    layers  configurations, in normal form, that come from users: templates, what was submitted, what a workspace fixes
    gpu     whether the task has slots, and so gets the administrator's pod spec for slots
    """
    pods = [(layer.get("environment") or {}).get("pod_spec") for layer in layers]
    if not cluster.resource_manager.is_kubernetes or not any(pods):
        return
    pod: dict[str, Any] = {}
    for above in pods:
        pod = merge_pod(pod, above)
    security = cluster.security
    namespace = await _namespace(connection, cluster, workspace_id, pool)
    rules = NamespaceRules(
        namespace=namespace,
        beside_release=bool(security.release_namespace) and namespace == security.release_namespace,
        references=security.references,
        labels=security.pod_labels,
    )
    defaults = cluster.defaults_of(pool)
    given = _spec((defaults.gpu_pod_spec if gpu else defaults.cpu_pod_spec) or {})
    refused = violations(pod, rules)
    for field in NOT_FOR_USERS:
        if _spec(pod).get(field) and not given.get(field):
            refused.append(f"spec.{field} is for task_container_defaults of the cluster configuration to allow")
    if refused:
        raise InvalidRequest("\n".join(f"environment.pod_spec.{each}" for each in refused))


async def _namespace(connection: AsyncConnection, cluster: ClusterConfig, workspace_id: int, pool: str) -> str:
    """Where tasks of a workspace run in a pool: where the workspace is bound to, or else the pool's namespace."""
    manager = cluster.resource_manager
    bound = select(bindings.c.namespace).where(
        bindings.c.workspace_id == workspace_id, bindings.c.cluster_name == manager.cluster_name
    )
    found = (await connection.execute(bound)).scalar_one_or_none()
    of_pool = cluster.pool(pool)
    return found or (of_pool.kubernetes_namespace if of_pool else "") or manager.default_namespace


def _spec(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = pod.get("spec")
    return spec if isinstance(spec, dict) else {}
