"""REST shapes of workspaces (docs/reference/platform.md 7)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination, Timestamp, WireEnum
from services.api.wire.ordering import OrderBy
from services.api.wire.users.users import AgentUserGroup
from services.api.wire.workspaces.namespaces import NamespaceBinding, NamespaceMeta


class WorkspaceState(WireEnum):
    UNSPECIFIED = "WORKSPACE_STATE_UNSPECIFIED", 0
    DELETING = "WORKSPACE_STATE_DELETING", 1
    DELETE_FAILED = "WORKSPACE_STATE_DELETE_FAILED", 2
    DELETED = "WORKSPACE_STATE_DELETED", 3


class Workspace(Message):
    id: int = 0
    name: str = ""
    archived: bool = False
    username: str = ""
    immutable: bool = False
    num_projects: int = 0
    pinned: bool = False
    user_id: int = 0
    num_experiments: int = 0
    state: WorkspaceState = WorkspaceState.UNSPECIFIED
    error_message: str = ""
    agent_user_group: AgentUserGroup | UnsetType = UNSET
    checkpoint_storage_config: dict[str, Any] | UnsetType = UNSET
    pinned_at: Timestamp | None = None
    default_compute_pool: str = ""
    default_aux_pool: str = ""
    auto_created_namespace: str | UnsetType = UNSET


class WorkspaceResponse(Message):
    workspace: Workspace | None = None


class SortWorkspaces(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    ID = "SORT_BY_ID", 1
    NAME = "SORT_BY_NAME", 2


class GetWorkspacesQuery(Message):
    sort_by: SortWorkspaces = SortWorkspaces.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    name: str = ""
    name_case_sensitive: str = ""
    archived: bool | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    users: list[str] = []
    user_ids: list[int] = []


class GetWorkspacesResponse(Message):
    workspaces: list[Workspace] = []
    pagination: Pagination = field(default_factory=Pagination)


class PostWorkspaceRequest(Message):
    name: str = ""
    agent_user_group: AgentUserGroup | UnsetType = UNSET
    checkpoint_storage_config: dict[str, Any] | UnsetType = UNSET
    default_compute_pool: str = ""
    default_aux_pool: str = ""
    cluster_namespace_meta: dict[str, NamespaceMeta] = {}
    cluster_quota_pairs: dict[str, int] = {}
    auto_create_namespace_all_clusters: bool = False


class ChangedWorkspaceResponse(Message):
    """A workspace that was made or changed, with the bindings that came with it, by the name of the cluster."""

    workspace: Workspace | None = None
    namespace_bindings: dict[str, NamespaceBinding] = {}


class PatchWorkspace(Message):
    name: str | UnsetType = UNSET
    agent_user_group: AgentUserGroup | UnsetType = UNSET
    checkpoint_storage_config: dict[str, Any] | UnsetType = UNSET
    default_compute_pool: str | UnsetType = UNSET
    default_compute_resource_pool: str | UnsetType = UNSET
    default_aux_pool: str | UnsetType = UNSET
    default_aux_resource_pool: str | UnsetType = UNSET
    cluster_namespace_meta: dict[str, NamespaceMeta] = {}
    auto_create_namespace_all_clusters: bool = False


class DeleteResponse(Message):
    completed: bool = False


class PageQuery(Message):
    offset: int = 0
    limit: int = 0


class AvailablePools(Message):
    resource_pools: list[str] = []
    pagination: Pagination = field(default_factory=Pagination)
