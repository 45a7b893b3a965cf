"""Projects: the folders of a workspace, with their notes."""

from __future__ import annotations

from typing import Any, Final

from services.api.access.user_checks import require_one_of_owners_or_admin
from services.api.actions.workspaces import projects as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.workspaces.projects import project_by_key, project_row, wire_project
from services.api.queries.workspaces.workspaces import workspace_row
from services.api.wire.base import Empty
from services.api.wire.workspaces.projects import (
    MoveProjectRequest,
    Note,
    Notes,
    PatchProject,
    PostProjectRequest,
    ProjectResponse,
)
from services.api.wire.workspaces.workspaces import DeleteResponse


async def post_project(call: Call[App, None, PostProjectRequest]) -> ProjectResponse:
    row = await actions.create_project(
        call.app.db,
        call.path_int("workspaceId"),
        call.body,
        user_id=call.principal.user_id,
        now=call.app.clock.now(),
    )
    return ProjectResponse(project=wire_project(row))


async def get_project(call: Call[App, None, None]) -> ProjectResponse:
    async with call.app.db.read() as connection:
        return ProjectResponse(project=wire_project(await project_row(connection, call.path_int("id"))))


async def get_project_by_key(call: Call[App, None, None]) -> ProjectResponse:
    async with call.app.db.read() as connection:
        return ProjectResponse(project=wire_project(await project_by_key(connection, call.path_str("key"))))


async def patch_project(call: Call[App, None, PatchProject]) -> ProjectResponse:
    project_id = call.path_int("id")
    await _require_owner(call, project_id)
    return ProjectResponse(project=wire_project(await actions.patch_project(call.app.db, project_id, call.body)))


async def delete_project(call: Call[App, None, None]) -> DeleteResponse:
    project_id = call.path_int("id")
    await _require_owner(call, project_id)
    return DeleteResponse(completed=await actions.delete_project(call.app.db, project_id))


async def archive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=True)


async def unarchive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=False)


async def _archive(call: Call[App, None, None], *, archived: bool) -> Empty:
    project_id = call.path_int("id")
    await _require_owner(call, project_id)
    await actions.archive_project(call.app.db, project_id, archived=archived)
    return Empty()


async def move_project(call: Call[App, None, MoveProjectRequest]) -> Empty:
    project_id = call.path_int("projectId")
    await _require_owner(call, project_id, workspace_counts=False)
    await actions.move_project(call.app.db, project_id, destination=call.body.destination_workspace_id)
    return Empty()


async def add_note(call: Call[App, None, Note]) -> Notes:
    notes = await actions.set_notes(call.app.db, call.path_int("projectId"), [call.body], append=True)
    return Notes(notes=notes)


async def put_notes(call: Call[App, None, Notes]) -> Notes:
    notes = await actions.set_notes(call.app.db, call.path_int("projectId"), call.body.notes, append=False)
    return Notes(notes=notes)


async def _require_owner(call: Call[App, None, Any], project_id: int, *, workspace_counts: bool = True) -> None:
    async with call.app.db.read() as connection:
        project = await project_row(connection, project_id)
        owners = [project["owner_id"]]
        if workspace_counts:
            owners.append((await workspace_row(connection, project["workspace_id"]))["owner_id"])
    require_one_of_owners_or_admin(
        call.principal, owners, "non admin users need to own the project or workspace to change it"
    )


_ONE: Final = "/api/v1/projects/{id}"
_NOTES: Final = "/api/v1/projects/{projectId}/notes"

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/workspaces/{workspaceId}/projects",
        handler=post_project,
        body=PostProjectRequest,
        response=ProjectResponse,
    ),
    Route(method="GET", path=_ONE, handler=get_project, response=ProjectResponse),
    Route(method="GET", path="/api/v1/projects/key/{key}", handler=get_project_by_key, response=ProjectResponse),
    Route(method="PATCH", path=_ONE, handler=patch_project, body=PatchProject, response=ProjectResponse),
    Route(method="DELETE", path=_ONE, handler=delete_project, response=DeleteResponse),
    Route(method="POST", path=f"{_ONE}/archive", handler=archive, response=Empty),
    Route(method="POST", path=f"{_ONE}/unarchive", handler=unarchive, response=Empty),
    Route(
        method="POST",
        path="/api/v1/projects/{projectId}/move",
        handler=move_project,
        body=MoveProjectRequest,
        response=Empty,
    ),
    Route(method="POST", path=_NOTES, handler=add_note, body=Note, response=Notes),
    Route(method="PUT", path=_NOTES, handler=put_notes, body=Notes, response=Notes),
)
