"""REST shapes of projects and their notes (docs/reference/platform.md 8)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination, Timestamp, WireEnum
from services.api.wire.ordering import OrderBy
from services.api.wire.workspaces.workspaces import WorkspaceState


class Note(Message):
    name: str = ""
    contents: str = ""


class Project(Message):
    id: int = 0
    name: str = ""
    workspace_id: int = 0
    description: str = ""
    last_experiment_started_at: Timestamp | None = None
    notes: list[Note] = []
    num_experiments: int = 0
    num_active_experiments: int = 0
    archived: bool = False
    username: str = ""
    immutable: bool = False
    user_id: int = 0
    workspace_name: str = ""
    state: WorkspaceState = WorkspaceState.UNSPECIFIED
    error_message: str = ""
    key: str = ""
    num_runs: int = 0


class ProjectResponse(Message):
    project: Project | None = None


class SortProjects(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    CREATION_TIME = "SORT_BY_CREATION_TIME", 1
    LAST_EXPERIMENT_START_TIME = "SORT_BY_LAST_EXPERIMENT_START_TIME", 2
    NAME = "SORT_BY_NAME", 3
    DESCRIPTION = "SORT_BY_DESCRIPTION", 4
    ID = "SORT_BY_ID", 5


class GetProjectsQuery(Message):
    sort_by: SortProjects = SortProjects.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    name: str = ""
    archived: bool | UnsetType = UNSET
    users: list[str] = []
    user_ids: list[int] = []


class GetProjectsResponse(Message):
    projects: list[Project] = []
    pagination: Pagination = field(default_factory=Pagination)


class PostProjectRequest(Message):
    name: str = ""
    description: str = ""
    key: str | UnsetType = UNSET


class PatchProject(Message):
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    key: str | UnsetType = UNSET


class MoveProjectRequest(Message):
    destination_workspace_id: int = 0


class Notes(Message):
    notes: list[Note] = []
