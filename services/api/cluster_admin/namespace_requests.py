"""Requests about namespaces and quotas, decoded and checked as far as that needs no cluster. Pure.

Clients name clusters, and there is one; "" means it too. Source: docs/reference/kubernetes.md 8.2,
docs/reference/platform.md 7.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from libs.cluster.config import ResourceManagerConfig
from libs.errors import FailedPrecondition, InvalidRequest
from services.api.cluster_admin.namespace_names import is_namespace_name
from services.api.wire.workspaces.namespaces import NamespaceMeta

NO_OWN_NAMESPACE: Final = "cannot set quota on a workspace that is not bound to an auto-created namespace"
_ALL_MEANS_ALL: Final = "cannot specify a cluster name when you request to auto-create a namespace for all clusters"
_EITHER_OR: Final = (
    "must either specify a namespace or indicate that you would like an auto-created namespace, "
    "but cannot request both."
)


class NamespaceRequest(Struct, frozen=True, kw_only=True):
    """The namespace that the tasks of a workspace shall have in a cluster."""

    cluster_name: str
    namespace: str | None
    """None is one that is made for the workspace."""
    quota: int | None = None
    """Slots that its tasks may hold there together."""


def cluster_named(manager: ResourceManagerConfig, name: str) -> str:
    """The name of the cluster that a client calls ``name``. Raises InvalidRequest when there is none."""
    if name not in ("", manager.cluster_name):
        raise InvalidRequest(f"no resource manager with cluster name {name}")
    return manager.cluster_name


def require_cluster(manager: ResourceManagerConfig) -> None:
    """Raises FailedPrecondition where tasks have no namespaces."""
    if not manager.has_namespaces:
        raise FailedPrecondition(
            "namespaces and resource quotas need resource pools on Kubernetes; tasks of this cluster run as processes"
        )


def read_namespace_requests(
    meta: Mapping[str, NamespaceMeta],
    quotas: Mapping[str, int] | None = None,
    *,
    manager: ResourceManagerConfig,
    all_clusters: bool = False,
) -> tuple[NamespaceRequest, ...]:
    """At most one request per cluster; none when the request has nothing to say.

    meta, quotas  by the name of the cluster
    all_clusters  the request as a whole asks for an auto-created namespace everywhere
    Raises InvalidRequest, or FailedPrecondition for a cluster without namespaces.
    """
    asked = dict(meta)
    if all_clusters:
        asked.setdefault("", NamespaceMeta(auto_create_namespace_all_clusters=True))
    limits = read_quotas(quotas or {}, manager=manager)
    if asked or limits:
        require_cluster(manager)
    requests: dict[str, NamespaceRequest] = {}
    for name, one in asked.items():
        request = _read(name, one, manager)
        if request.cluster_name in requests:
            raise InvalidRequest(f"clusterNamespaceMeta: cluster {request.cluster_name} is named more than once")
        requests[request.cluster_name] = _limited(request, limits.pop(request.cluster_name, None))
    if limits or any(request.quota is not None and request.namespace is not None for request in requests.values()):
        raise FailedPrecondition(NO_OWN_NAMESPACE)
    return tuple(requests.values())


def read_quotas(quotas: Mapping[str, int], *, manager: ResourceManagerConfig) -> dict[str, int]:
    """Slots by the true name of the cluster. Raises InvalidRequest."""
    limits: dict[str, int] = {}
    for name, slots in quotas.items():
        cluster = cluster_named(manager, name)
        if cluster in limits:
            raise InvalidRequest(f"clusterQuotaPairs: cluster {cluster} is named more than once")
        limits[cluster] = _checked_quota(slots)
    return limits


def _read(name: str, meta: NamespaceMeta, manager: ResourceManagerConfig) -> NamespaceRequest:
    if name and meta.cluster_name and meta.cluster_name != name:
        raise InvalidRequest(f"clusterNamespaceMeta: the entry of cluster {name} is about {meta.cluster_name}")
    named = name or meta.cluster_name
    if meta.auto_create_namespace_all_clusters and named:
        raise InvalidRequest(_ALL_MEANS_ALL)
    cluster = cluster_named(manager, named)
    is_made = meta.auto_create_namespace or meta.auto_create_namespace_all_clusters
    if is_made == bool(meta.namespace):
        raise InvalidRequest(_EITHER_OR)
    if meta.namespace and not is_namespace_name(meta.namespace):
        raise InvalidRequest(f"{not_found(meta.namespace)}: it is no name of a namespace")
    quota = _checked_quota(meta.resource_quota) if isinstance(meta.resource_quota, int) else None
    return NamespaceRequest(cluster_name=cluster, namespace=None if is_made else meta.namespace, quota=quota)


def not_found(namespace: str) -> str:
    """How a refusal of a namespace begins; clients look for these words."""
    return (
        "error verifying Kubernetes namespace: error verifying namespace existence "
        f"{namespace}: error finding namespace {namespace}"
    )


def _limited(request: NamespaceRequest, quota: int | None) -> NamespaceRequest:
    """Clients name the quota in one place, in the other, or in both."""
    if quota is None or request.quota == quota:
        return request
    if request.quota is not None:
        raise InvalidRequest(f"two resource quotas for cluster {request.cluster_name}: {request.quota} and {quota}")
    return NamespaceRequest(cluster_name=request.cluster_name, namespace=request.namespace, quota=quota)


def _checked_quota(slots: int) -> int:
    if slots < 0:
        raise InvalidRequest(f"a resource quota must be a number of slots, not {slots}")
    return slots
