"""REST shapes of the namespaces and quotas that workspaces have in clusters."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from services.api.wire.base import Double, Message


class NamespaceMeta(Message):
    """What is wanted in one cluster: ``namespace``, or one that is made for the workspace."""

    cluster_name: str = ""
    namespace: str = ""
    auto_create_namespace: bool = False
    auto_create_namespace_all_clusters: bool = False
    resource_quota: int | UnsetType = UNSET


class NamespaceBinding(Message):
    workspace_id: int = 0
    namespace: str = ""
    cluster_name: str = ""
    auto_create_namespace: bool = False


class SetBindingsRequest(Message):
    """By the name of the cluster."""

    cluster_namespace_meta: dict[str, NamespaceMeta] = {}


class BindingsResponse(Message):
    """By the name of the cluster."""

    namespace_bindings: dict[str, NamespaceBinding] = {}


class DeleteBindingsQuery(Message):
    cluster_names: list[str] = []


class SetQuotasRequest(Message):
    """By the name of the cluster: slots that tasks of the workspace may hold there."""

    cluster_quota_pairs: dict[str, int] = {}


class QuotasResponse(Message):
    """By the name of the cluster; one without a limit is absent."""

    resource_quotas: dict[str, Double] = {}


class WorkspaceIds(Message):
    workspace_ids: list[int] = []
