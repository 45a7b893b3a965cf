"""Projects: the folders of a workspace, with their notes."""

from __future__ import annotations

from typing import Final

from services.api.actions.workspaces import projects as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.workspaces.projects import project_by_key, project_row, wire_project
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
    row = await actions.patch_project(call.app.db, call.path_int("id"), call.body, rights=call.rights)
    return ProjectResponse(project=wire_project(row))


async def delete_project(call: Call[App, None, None]) -> DeleteResponse:
    return DeleteResponse(completed=await actions.delete_project(call.app.db, call.path_int("id"), rights=call.rights))


async def archive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=True)


async def unarchive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=False)


async def _archive(call: Call[App, None, None], *, archived: bool) -> Empty:
    await actions.archive_project(call.app.db, call.path_int("id"), archived=archived, rights=call.rights)
    return Empty()


async def move_project(call: Call[App, None, MoveProjectRequest]) -> Empty:
    project_id = call.path_int("projectId")
    destination = call.body.destination_workspace_id
    await actions.move_project(call.app.db, project_id, destination=destination, rights=call.rights)
    return Empty()


async def add_note(call: Call[App, None, Note]) -> Notes:
    notes = await actions.set_notes(call.app.db, call.path_int("projectId"), [call.body], append=True)
    return Notes(notes=notes)


async def put_notes(call: Call[App, None, Notes]) -> Notes:
    notes = await actions.set_notes(call.app.db, call.path_int("projectId"), call.body.notes, append=False)
    return Notes(notes=notes)


_ONE: Final = "/api/v1/projects/{id}"
_NOTES: Final = "/api/v1/projects/{projectId}/notes"

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/workspaces/{workspaceId}/projects",
        handler=post_project,
        body=PostProjectRequest,
        response=ProjectResponse,
        summary="Create a project",
    ),
    Route(method="GET", path=_ONE, handler=get_project, response=ProjectResponse, summary="Get a project"),
    Route(
        method="GET",
        path="/api/v1/projects/key/{key}",
        handler=get_project_by_key,
        response=ProjectResponse,
        summary="Get a project by its key",
    ),
    Route(
        method="PATCH",
        path=_ONE,
        handler=patch_project,
        body=PatchProject,
        response=ProjectResponse,
        summary="Change the name, the description or the key of a project",
    ),
    Route(
        method="DELETE",
        path=_ONE,
        handler=delete_project,
        response=DeleteResponse,
        summary="Delete a project with its experiments",
    ),
    Route(method="POST", path=f"{_ONE}/archive", handler=archive, response=Empty, summary="Archive a project"),
    Route(method="POST", path=f"{_ONE}/unarchive", handler=unarchive, response=Empty, summary="Unarchive a project"),
    Route(
        method="POST",
        path="/api/v1/projects/{projectId}/move",
        handler=move_project,
        body=MoveProjectRequest,
        response=Empty,
        summary="Move a project to another workspace",
    ),
    Route(
        method="POST",
        path=_NOTES,
        handler=add_note,
        body=Note,
        response=Notes,
        summary="Add a page to the notes of a project",
    ),
    Route(
        method="PUT",
        path=_NOTES,
        handler=put_notes,
        body=Notes,
        response=Notes,
        summary="Replace the notes of a project",
    ),
)
