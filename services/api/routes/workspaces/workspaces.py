"""Workspaces: list, look at, create, change, archive, pin and delete them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from libs.config.yaml_text import MAX_VALUES
from libs.natural_order.keys import natural_sort_key
from services.api.actions.workspaces import workspaces as actions
from services.api.actions.workspaces.namespaces import BindingPlan
from services.api.app import App
from services.api.cluster_admin.namespace_requests import read_namespace_requests
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.pagination import list_page
from services.api.queries.workspaces.available_pools import unavailable_pools
from services.api.queries.workspaces.projects import list_projects
from services.api.queries.workspaces.workspaces import Row, list_workspaces, wire_workspace, workspace_row
from services.api.routes.workspaces.namespaces import wire_bindings
from services.api.wire.base import Empty
from services.api.wire.workspaces.projects import GetProjectsQuery, GetProjectsResponse
from services.api.wire.workspaces.workspaces import (
    AvailablePools,
    ChangedWorkspaceResponse,
    DeleteResponse,
    GetWorkspacesQuery,
    GetWorkspacesResponse,
    PageQuery,
    PatchWorkspace,
    PostWorkspaceRequest,
    WorkspaceResponse,
)


async def get_workspaces(call: Call[App, GetWorkspacesQuery, None]) -> GetWorkspacesResponse:
    async with call.app.db.read_prepared() as connection:
        found = await list_workspaces(connection, call.query, rights=call.rights)
    page, pagination = list_page(found, offset=call.query.offset, limit=call.query.limit)
    return GetWorkspacesResponse(workspaces=page, pagination=pagination)


async def get_workspace(call: Call[App, None, None]) -> WorkspaceResponse:
    async with call.app.db.read_prepared() as connection:
        row = await workspace_row(connection, call.path_int("id"), user_id=call.principal.user_id)
    return WorkspaceResponse(workspace=wire_workspace(row))


async def post_workspace(call: Call[App, None, PostWorkspaceRequest]) -> ChangedWorkspaceResponse:
    namespace_requests = read_namespace_requests(
        call.body.cluster_namespace_meta,
        call.body.cluster_quota_pairs,
        manager=call.app.cluster.resource_manager,
        all_clusters=call.body.auto_create_namespace_all_clusters,
    )
    row, plans = await actions.create_workspace(call.app, call.body, namespace_requests, user_id=call.principal.user_id)
    return _changed(row, plans)


async def patch_workspace(call: Call[App, None, PatchWorkspace]) -> ChangedWorkspaceResponse:
    workspace_id = call.path_int("id")
    namespace_requests = read_namespace_requests(
        call.body.cluster_namespace_meta,
        manager=call.app.cluster.resource_manager,
        all_clusters=call.body.auto_create_namespace_all_clusters,
    )
    row, plans = await actions.patch_workspace(
        call.app, workspace_id, call.body, namespace_requests, rights=call.rights
    )
    return _changed(row, plans)


async def delete_workspace(call: Call[App, None, None]) -> DeleteResponse:
    workspace_id = call.path_int("id")
    return DeleteResponse(completed=await actions.delete_workspace(call.app.db, workspace_id, rights=call.rights))


async def archive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=True)


async def unarchive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=False)


async def _archive(call: Call[App, None, None], *, archived: bool) -> Empty:
    await actions.archive_workspace(call.app.db, call.path_int("id"), archived=archived, rights=call.rights)
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
        found = await list_projects(connection, workspace_id, call.query, rights=call.rights)
    page, pagination = list_page(found, offset=call.query.offset, limit=call.query.limit)
    return GetProjectsResponse(projects=page, pagination=pagination)


async def get_available_pools(call: Call[App, PageQuery, None]) -> AvailablePools:
    """Every pool but those that are bound to other workspaces only."""
    workspace_id = call.path_int("workspaceId")
    async with call.app.db.read() as connection:
        await workspace_row(connection, workspace_id)
        unavailable = await unavailable_pools(connection, workspace_id)
    available = {pool.pool_name for pool in call.app.cluster.resource_pools} - unavailable
    names = sorted(available, key=natural_sort_key)
    page, pagination = list_page(names, offset=call.query.offset, limit=call.query.limit)
    return AvailablePools(resource_pools=page, pagination=pagination)


def _changed(row: Row, plans: Iterable[BindingPlan]) -> ChangedWorkspaceResponse:
    return ChangedWorkspaceResponse(workspace=wire_workspace(row), namespace_bindings=wire_bindings(row["id"], plans))


_ONE: Final = "/api/v1/workspaces/{id}"

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/workspaces",
        handler=get_workspaces,
        query=GetWorkspacesQuery,
        response=GetWorkspacesResponse,
        summary="List workspaces",
    ),
    Route(
        method="POST",
        path="/api/v1/workspaces",
        handler=post_workspace,
        body=PostWorkspaceRequest,
        max_body_values=MAX_VALUES,
        response=ChangedWorkspaceResponse,
        summary="Create a workspace",
    ),
    Route(method="GET", path=_ONE, handler=get_workspace, response=WorkspaceResponse, summary="Get a workspace"),
    Route(
        method="PATCH",
        path=_ONE,
        handler=patch_workspace,
        body=PatchWorkspace,
        max_body_values=MAX_VALUES,
        response=ChangedWorkspaceResponse,
        summary="Change a workspace",
    ),
    Route(
        method="DELETE",
        path=_ONE,
        handler=delete_workspace,
        response=DeleteResponse,
        summary="Delete a workspace with its projects",
    ),
    Route(method="POST", path=f"{_ONE}/archive", handler=archive, response=Empty, summary="Archive a workspace"),
    Route(method="POST", path=f"{_ONE}/unarchive", handler=unarchive, response=Empty, summary="Unarchive a workspace"),
    Route(method="POST", path=f"{_ONE}/pin", handler=pin, response=Empty, summary="Pin a workspace for the caller"),
    Route(
        method="POST", path=f"{_ONE}/unpin", handler=unpin, response=Empty, summary="Unpin a workspace for the caller"
    ),
    Route(
        method="GET",
        path=f"{_ONE}/projects",
        handler=get_workspace_projects,
        query=GetProjectsQuery,
        response=GetProjectsResponse,
        summary="List the projects of a workspace, or with id 0 of all workspaces",
    ),
    Route(
        method="GET",
        path="/api/v1/workspaces/{workspaceId}/available-resource-pools",
        handler=get_available_pools,
        query=PageQuery,
        response=AvailablePools,
        summary="List the resource pools that a workspace may use",
    ),
)
