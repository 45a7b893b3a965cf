"""The project of a new experiment, and what the workspace of that project decides for it.

Source: docs/reference/experiments.md 1.7 (step 4); docs/reference/platform.md 7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct
from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.prepared.statements import PreparedStatement
from libs.db.tables.workspaces import projects, workspaces
from libs.errors import FailedPrecondition, InvalidRequest, NotFound
from services.api.queries.prepared import PreparedQuery, given
from services.api.queries.workspaces.available_pools import unavailable_to

DEFAULT_PROJECT: Final = 1


class ProjectRef(Struct, frozen=True, kw_only=True):
    project_id: int
    workspace_id: int
    owner_id: int
    """Of the project."""
    archived: bool
    """The project, or the workspace it is in."""
    state: str
    """``""``, or that of a project or workspace that is being deleted."""
    default_compute_pool: str
    default_aux_pool: str
    checkpoint_storage: dict[str, Any] | None
    unavailable_pools: frozenset[str] = frozenset()
    """Those that are bound to other workspaces only."""


RequireProject: TypeAlias = Callable[[ProjectRef], None]


async def choose_project(
    connection: AsyncConnection, project_id: int, config: Mapping[str, Any], *, require: RequireProject
) -> ProjectRef:
    """The project for an experiment: that of the request, that in its configuration, or the default one.

    project_id  of the request; 0 and 1 leave the choice to the configuration
    require     raises unless the caller may create there; until then nothing is said of that project
    Raises NotFound, FailedPrecondition when nothing may be added there, InvalidRequest.
    """
    workspace_name, project_name = config.get("workspace") or "", config.get("project") or ""
    if project_id > DEFAULT_PROJECT:
        project = await load_project(connection, project_id)
    elif workspace_name and project_name:
        return await _choose_named(connection, workspace_name, project_name, require)
    elif workspace_name or project_name:
        raise InvalidRequest("workspace and project must both be included in config if one is provided")
    else:
        project = await load_project(connection, DEFAULT_PROJECT)
    require(project)
    check_may_grow(project)
    return project


async def _choose_named(
    connection: AsyncConnection, workspace_name: str, project_name: str, require: RequireProject
) -> ProjectRef:
    project = await _named(connection, workspace_name, project_name)
    try:
        require(project)
    except NotFound as error:
        raise _not_found(workspace_name, project_name) from error
    check_may_grow(project)
    return project


async def load_project(connection: AsyncConnection, project_id: int) -> ProjectRef:
    """The project of that id. Raises NotFound."""
    rows = await _BY_ID.rows(connection, project_id=project_id)
    if not rows:
        raise NotFound("project", project_id)
    return _project_ref(rows[0])


async def keep_project(connection: AsyncConnection, project: ProjectRef) -> None:
    """Keep the project from being deleted until the transaction ends; others may add to it. Raises NotFound."""
    if not await _KEEP.rows(connection, project_id=project.project_id):
        raise NotFound("project", project.project_id)


async def lock_project(connection: AsyncConnection, project: ProjectRef) -> None:
    """Keep the project as it is until the transaction ends: nobody archives, deletes or adds to it.

    Raises NotFound, FailedPrecondition when nothing may be added there any more.
    """
    await connection.execute(
        select(projects.c.id).where(projects.c.id == project.project_id).with_for_update(key_share=True)
    )
    check_may_grow(await load_project(connection, project.project_id))


def check_may_grow(project: ProjectRef) -> None:
    """Raise FailedPrecondition unless experiments may be added to the project."""
    if project.archived:
        raise FailedPrecondition(f"project ({project.project_id}) is archived and cannot add new experiments")
    if project.state:
        raise FailedPrecondition(f"project ({project.project_id}) is being deleted and cannot add new experiments")


async def _named(connection: AsyncConnection, workspace: str, project: str) -> ProjectRef:
    rows = await _BY_NAME.rows(connection, workspace=workspace.lower(), project=project)
    if not rows:
        raise _not_found(workspace, project)
    return _project_ref(rows[0])


def _not_found(workspace: str, project: str) -> NotFound:
    return NotFound("workspace/project", f"{workspace}/{project}")


def _select() -> Select[Any]:
    return select(
        projects.c.id,
        projects.c.owner_id,
        projects.c.archived,
        projects.c.state,
        workspaces.c.id.label("workspace_id"),
        workspaces.c.archived.label("workspace_archived"),
        workspaces.c.state.label("workspace_state"),
        workspaces.c.default_compute_pool,
        workspaces.c.default_aux_pool,
        workspaces.c.checkpoint_storage,
        unavailable_to(workspaces.c.id).label("unavailable_pools"),
    ).join(workspaces, workspaces.c.id == projects.c.workspace_id)


def _project_ref(row: Any) -> ProjectRef:
    return ProjectRef(
        project_id=row.id,
        workspace_id=row.workspace_id,
        owner_id=row.owner_id,
        archived=row.archived or row.workspace_archived,
        state=row.state or row.workspace_state,
        default_compute_pool=row.default_compute_pool,
        default_aux_pool=row.default_aux_pool,
        checkpoint_storage=row.checkpoint_storage,
        unavailable_pools=frozenset(row.unavailable_pools or ()),
    )


_BY_ID: Final = PreparedQuery(_select().where(projects.c.id == given("project_id", projects.c.id)))
_BY_NAME: Final = PreparedQuery(
    _select().where(
        func.lower(workspaces.c.name) == given("workspace", workspaces.c.name),
        projects.c.name == given("project", projects.c.name),
    )
)
_KEEP: Final = PreparedStatement("SELECT id FROM projects WHERE id = :project_id FOR KEY SHARE")
