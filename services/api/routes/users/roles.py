"""Roles: which there are, who has them, and giving them to users and groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Row

from libs.db.any_of import any_of
from libs.db.tables.users import role_assignments
from libs.errors import InvalidRequest, NotFound
from services.api.access.rights.actions import Action
from services.api.access.rights.loading import groups_of
from services.api.access.rights.permissions import Permission
from services.api.access.rights.rights import UserRights
from services.api.access.rights.roles import ROLES
from services.api.actions.users import roles as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.users.groups import group_details, is_member
from services.api.queries.users.roles import (
    assignments,
    page_of_roles,
    summarised,
    with_assignments,
    workspace_members,
)
from services.api.queries.users.users import user_by_id
from services.api.queries.workspaces.workspaces import workspace_row
from services.api.wire.base import Empty
from services.api.wire.users.roles import (
    AssignmentsRequest,
    RolesAndAssignments,
    RolesByIdRequest,
    RolesResponse,
    RolesWithAssignments,
    SearchAssignableRolesRequest,
    SearchRolesRequest,
    WorkspaceMembersQuery,
    WorkspaceMembersResponse,
)


async def my_permissions(call: Call[App, None, None]) -> RolesAndAssignments:
    async with call.app.db.read() as connection:
        mine = role_assignments.c.group_id.in_(groups_of(call.principal.user_id))
        return summarised(await assignments(connection, mine))


async def search(call: Call[App, None, SearchRolesRequest]) -> RolesResponse:
    """All roles for those who assign or change roles; others see their own."""
    role_ids = await _visible_roles(call)
    page, pagination = page_of_roles(role_ids, offset=call.body.offset, limit=call.body.limit)
    return RolesResponse(roles=page, pagination=pagination)


async def by_ids(call: Call[App, None, RolesByIdRequest]) -> RolesWithAssignments:
    wanted = list(dict.fromkeys(call.body.role_ids))
    visible = await _visible_roles(call)
    for role_id in wanted:
        if role_id not in ROLES or (visible is not None and role_id not in visible):
            raise NotFound("role", role_id)
    async with call.app.db.read() as connection:
        conditions = [any_of(role_assignments.c.role_id, wanted)]
        if visible is not None:
            conditions.append(role_assignments.c.group_id.in_(groups_of(call.principal.user_id)))
        rows = await assignments(connection, *conditions)
    return RolesWithAssignments(roles=with_assignments(_seen(call.rights, rows), wanted))


async def by_user(call: Call[App, None, None]) -> RolesWithAssignments:
    """Also those that the user has through groups."""
    user_id = call.path_int("userId")
    if user_id == 0:
        raise InvalidRequest("userId: must not be 0")
    itself = user_id == call.principal.user_id
    if not itself and not call.rights.may(Action.VIEW_ROLES):
        raise NotFound("user", user_id)
    async with call.app.db.read() as connection:
        await user_by_id(connection, user_id)
        rows = await assignments(connection, role_assignments.c.group_id.in_(groups_of(user_id)))
    return RolesWithAssignments(roles=with_assignments(rows if itself else _seen(call.rights, rows)))


async def by_group(call: Call[App, None, None]) -> RolesAndAssignments:
    group_id = call.path_int("groupId")
    async with call.app.db.read() as connection:
        await group_details(connection, group_id)
        member = await is_member(connection, group_id=group_id, user_id=call.principal.user_id)
        if not member and not call.rights.may(Action.VIEW_ROLES):
            raise NotFound("group", group_id)
        rows = await assignments(connection, role_assignments.c.group_id == group_id)
    return summarised(rows if member else _seen(call.rights, rows))


async def by_assignability(call: Call[App, None, SearchAssignableRolesRequest]) -> RolesResponse:
    """Roles that can be given in a workspace, or without one for the whole cluster."""
    workspace_id = call.body.workspace_id if isinstance(call.body.workspace_id, int) else 0
    if workspace_id:
        call.rights.require_seen(Action.VIEW_WORKSPACE, "workspace", workspace_id, workspace_id=workspace_id)
    page, pagination = page_of_roles(None, offset=call.body.offset, limit=call.body.limit, local_only=workspace_id != 0)
    return RolesResponse(roles=page, pagination=pagination)


async def add(call: Call[App, None, AssignmentsRequest]) -> Empty:
    wanted = actions.asked_for(call.body)
    _require(call.rights, wanted)
    await actions.add_assignments(call.app.db, wanted)
    return Empty()


async def remove(call: Call[App, None, AssignmentsRequest]) -> Empty:
    unwanted = actions.asked_for(call.body)
    _require(call.rights, unwanted)
    await actions.remove_assignments(call.app.db, unwanted)
    return Empty()


async def members(call: Call[App, WorkspaceMembersQuery, None]) -> WorkspaceMembersResponse:
    """Nobody, for those who may not see the workspace."""
    workspace_id = call.path_int("workspaceId")
    if not call.rights.sees(Action.VIEW_WORKSPACE, workspace_id=workspace_id):
        return WorkspaceMembersResponse()
    async with call.app.db.read() as connection:
        await workspace_row(connection, workspace_id)
        return await workspace_members(connection, workspace_id, name=call.query.name)


async def _visible_roles(call: Call[App, None, Any]) -> frozenset[int] | None:
    """Roles that the caller may know of; None is all."""
    grants = call.rights.grants
    if grants is None or any(grants.has_anywhere(p) for p in (Permission.ASSIGN_ROLES, Permission.UPDATE_ROLES)):
        return None
    async with call.app.db.read() as connection:
        mine = role_assignments.c.group_id.in_(groups_of(call.principal.user_id))
        return frozenset(row.role_id for row in await assignments(connection, mine))


def _seen(rights: UserRights, rows: Iterable[Row[Any]]) -> list[Row[Any]]:
    """Without what is about workspaces that the caller may not know of."""
    return [
        row
        for row in rows
        if row.workspace_id is None or rights.sees(Action.VIEW_WORKSPACE, workspace_id=row.workspace_id)
    ]


def _require(rights: UserRights, wanted: Iterable[actions.GivenRole]) -> None:
    """In each workspace that is named, and for the whole cluster where that is."""
    for each in wanted:
        if each.workspace_id is not None:
            rights.require_seen(Action.VIEW_WORKSPACE, "workspace", each.workspace_id, workspace_id=each.workspace_id)
        rights.require(Action.ASSIGN_ROLES, workspace_id=each.workspace_id)


_SEARCH: Final = "/api/v1/roles/search"

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/permissions/summary",
        handler=my_permissions,
        response=RolesAndAssignments,
        summary="Get the roles and permissions of the caller",
    ),
    Route(
        method="POST",
        path=_SEARCH,
        handler=search,
        body=SearchRolesRequest,
        response=RolesResponse,
        summary="List roles",
    ),
    Route(
        method="POST",
        path=f"{_SEARCH}/by-ids",
        handler=by_ids,
        body=RolesByIdRequest,
        response=RolesWithAssignments,
        summary="Get roles by their ids, with those who have them",
    ),
    Route(
        method="GET",
        path=f"{_SEARCH}/by-user/{{userId}}",
        handler=by_user,
        response=RolesWithAssignments,
        summary="List the roles of a user, also those by groups",
    ),
    Route(
        method="GET",
        path=f"{_SEARCH}/by-group/{{groupId}}",
        handler=by_group,
        response=RolesAndAssignments,
        summary="List the roles of a group",
    ),
    Route(
        method="POST",
        path=f"{_SEARCH}/by-assignability",
        handler=by_assignability,
        body=SearchAssignableRolesRequest,
        response=RolesResponse,
        summary="List the roles that can be assigned in a workspace or on the whole cluster",
    ),
    Route(
        method="POST",
        path="/api/v1/roles/add-assignments",
        handler=add,
        body=AssignmentsRequest,
        response=Empty,
        summary="Assign roles to users and groups",
    ),
    Route(
        method="POST",
        path="/api/v1/roles/remove-assignments",
        handler=remove,
        body=AssignmentsRequest,
        response=Empty,
        summary="Take roles from users and groups",
    ),
    Route(
        method="GET",
        path="/api/v1/roles/workspace/{workspaceId}",
        handler=members,
        query=WorkspaceMembersQuery,
        response=WorkspaceMembersResponse,
        summary="List the users and groups that have a role in a workspace",
    ),
)
