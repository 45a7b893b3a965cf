"""Workspaces: what there is, and what their owners do with them."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from services.api.access.rules import require_admin, require_owner_or_admin
from services.api.actions import workspaces as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.pagination import list_page
from services.api.http.routing import Route
from services.api.queries.workspaces import list_projects, list_workspaces, wire_workspace, workspace_row
from services.api.wire.base import Empty
from services.api.wire.workspaces import (
    AvailablePools,
    DeleteResponse,
    GetProjectsQuery,
    GetProjectsResponse,
    GetWorkspacesQuery,
    GetWorkspacesResponse,
    PageQuery,
    PatchWorkspace,
    PostWorkspaceRequest,
    PostWorkspaceResponse,
    WorkspaceResponse,
)


async def get_workspaces(call: Call[App, GetWorkspacesQuery, None]) -> GetWorkspacesResponse:
    async with call.app.db.read() as connection:
        found = await list_workspaces(connection, call.query, user_id=call.principal.user_id)
    page, pagination = list_page(found, offset=call.query.offset, limit=call.query.limit)
    return GetWorkspacesResponse(workspaces=page, pagination=pagination)


async def get_workspace(call: Call[App, None, None]) -> WorkspaceResponse:
    async with call.app.db.read() as connection:
        row = await workspace_row(connection, call.path_int("id"), user_id=call.principal.user_id)
    return WorkspaceResponse(workspace=wire_workspace(row))


async def post_workspace(call: Call[App, None, PostWorkspaceRequest]) -> PostWorkspaceResponse:
    if call.body.agent_user_group is not UNSET:
        require_admin(call.principal, "set the agent user group of a workspace")
    row = await actions.create_workspace(
        call.app.db,
        call.body,
        cluster=call.app.cluster,
        user_id=call.principal.user_id,
        now=call.app.clock.now(),
    )
    return PostWorkspaceResponse(workspace=wire_workspace(row))


async def patch_workspace(call: Call[App, None, PatchWorkspace]) -> WorkspaceResponse:
    workspace_id = call.path_int("id")
    if call.body.agent_user_group is not UNSET:
        require_admin(call.principal, "set the agent user group of a workspace")
    if call.body.name is not UNSET or call.body.checkpoint_storage_config is not UNSET:
        await _require_owner(call, workspace_id)
    row = await actions.patch_workspace(
        call.app.db, workspace_id, call.body, cluster=call.app.cluster, user_id=call.principal.user_id
    )
    return WorkspaceResponse(workspace=wire_workspace(row))


async def delete_workspace(call: Call[App, None, None]) -> DeleteResponse:
    workspace_id = call.path_int("id")
    await _require_owner(call, workspace_id)
    return DeleteResponse(completed=await actions.delete_workspace(call.app.db, workspace_id))


async def archive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=True)


async def unarchive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=False)


async def _archive(call: Call[App, None, None], *, archived: bool) -> Empty:
    workspace_id = call.path_int("id")
    await _require_owner(call, workspace_id)
    await actions.archive_workspace(call.app.db, workspace_id, archived=archived)
    return Empty()


async def pin(call: Call[App, None, None]) -> Empty:
    return await _pin(call, pinned=True)


async def unpin(call: Call[App, None, None]) -> Empty:
    return await _pin(call, pinned=False)


async def _pin(call: Call[App, None, None], *, pinned: bool) -> Empty:
    await actions.pin_workspace(call.app.db, call.path_int("id"), user_id=call.principal.user_id, pinned=pinned)
    return Empty()


async def get_workspace_projects(call: Call[App, GetProjectsQuery, None]) -> GetProjectsResponse:
    """The projects of one workspace; id 0 stands for all workspaces."""
    workspace_id = call.path_int("id")
    async with call.app.db.read() as connection:
        if workspace_id:
            await workspace_row(connection, workspace_id)
        found = await list_projects(connection, workspace_id, call.query)
    page, pagination = list_page(found, offset=call.query.offset, limit=call.query.limit)
    return GetProjectsResponse(projects=page, pagination=pagination)


async def get_available_pools(call: Call[App, PageQuery, None]) -> AvailablePools:
    """Every pool: in this release pools are not bound to workspaces."""
    async with call.app.db.read() as connection:
        await workspace_row(connection, call.path_int("workspaceId"))
    names = sorted(pool.pool_name for pool in call.app.cluster.resource_pools)
    page, pagination = list_page(names, offset=call.query.offset, limit=call.query.limit)
    return AvailablePools(resource_pools=page, pagination=pagination)


async def _require_owner(call: Call[App, None, None] | Call[App, None, PatchWorkspace], workspace_id: int) -> None:
    async with call.app.db.read() as connection:
        row = await workspace_row(connection, workspace_id)
    require_owner_or_admin(call.principal, row["owner_id"], "change other user's workspaces")


_ONE: Final = "/api/v1/workspaces/{id}"

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/workspaces",
        handler=get_workspaces,
        query=GetWorkspacesQuery,
        response=GetWorkspacesResponse,
    ),
    Route(
        method="POST",
        path="/api/v1/workspaces",
        handler=post_workspace,
        body=PostWorkspaceRequest,
        response=PostWorkspaceResponse,
    ),
    Route(method="GET", path=_ONE, handler=get_workspace, response=WorkspaceResponse),
    Route(method="PATCH", path=_ONE, handler=patch_workspace, body=PatchWorkspace, response=WorkspaceResponse),
    Route(method="DELETE", path=_ONE, handler=delete_workspace, response=DeleteResponse),
    Route(method="POST", path=f"{_ONE}/archive", handler=archive, response=Empty),
    Route(method="POST", path=f"{_ONE}/unarchive", handler=unarchive, response=Empty),
    Route(method="POST", path=f"{_ONE}/pin", handler=pin, response=Empty),
    Route(method="POST", path=f"{_ONE}/unpin", handler=unpin, response=Empty),
    Route(
        method="GET",
        path=f"{_ONE}/projects",
        handler=get_workspace_projects,
        query=GetProjectsQuery,
        response=GetProjectsResponse,
    ),
    Route(
        method="GET",
        path="/api/v1/workspaces/{workspaceId}/available-resource-pools",
        handler=get_available_pools,
        query=PageQuery,
        response=AvailablePools,
    ),
)
