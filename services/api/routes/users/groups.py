"""Groups of users: find, look at, make, change and delete them."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, select, true

from libs.db.tables.users import group_members, groups
from libs.errors import InvalidRequest, NotFound
from services.api.access.rights.actions import Action
from services.api.actions.users import groups as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.users.groups import group_details, is_member, search_groups
from services.api.wire.base import Empty
from services.api.wire.users.groups import (
    AssignGroupsRequest,
    CreateGroupRequest,
    GroupResponse,
    SearchGroupsRequest,
    SearchGroupsResponse,
    UpdateGroupRequest,
)


async def search(call: Call[App, None, SearchGroupsRequest]) -> SearchGroupsResponse:
    """Those who may not assign roles find the groups that they are in."""
    visible: ColumnElement[bool] = true()
    if not call.rights.may(Action.VIEW_GROUPS):
        mine = select(group_members.c.group_id).where(group_members.c.user_id == call.principal.user_id)
        visible = groups.c.id.in_(mine)
    async with call.app.db.read() as connection:
        found, pagination = await search_groups(connection, call.body, visible=visible)
    return SearchGroupsResponse(groups=found, pagination=pagination)


async def get(call: Call[App, None, None]) -> GroupResponse:
    group_id = call.path_int("groupId")
    async with call.app.db.read() as connection:
        found = await group_details(connection, group_id)
        if not call.rights.may(Action.VIEW_GROUPS) and not await is_member(
            connection, group_id=group_id, user_id=call.principal.user_id
        ):
            raise NotFound("group", group_id)
    return GroupResponse(group=found)


async def create(call: Call[App, None, CreateGroupRequest]) -> GroupResponse:
    call.rights.require(Action.EDIT_GROUPS)
    return GroupResponse(group=await actions.create_group(call.app.db, call.body, now=call.app.clock.now()))


async def put(call: Call[App, None, UpdateGroupRequest]) -> GroupResponse:
    call.rights.require(Action.EDIT_GROUPS)
    group_id = call.path_int("groupId")
    if call.body.group_id not in (0, group_id):
        raise InvalidRequest("groupId: differs from the one in the path")
    changed = await actions.update_group(call.app.db, group_id, call.body, now=call.app.clock.now())
    return GroupResponse(group=changed)


async def delete(call: Call[App, None, None]) -> Empty:
    call.rights.require(Action.EDIT_GROUPS)
    await actions.delete_group(call.app.db, call.path_int("groupId"), now=call.app.clock.now())
    return Empty()


async def assign(call: Call[App, None, AssignGroupsRequest]) -> Empty:
    """Many users into and out of many groups."""
    call.rights.require(Action.EDIT_GROUPS)
    body = call.body
    await actions.assign_groups(
        call.app.db, body.user_ids, add=body.add_groups, remove=body.remove_groups, now=call.app.clock.now()
    )
    return Empty()


_ONE: Final = "/api/v1/groups/{groupId}"

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/groups",
        handler=create,
        body=CreateGroupRequest,
        response=GroupResponse,
        summary="Create a group",
    ),
    Route(
        method="POST",
        path="/api/v1/groups/search",
        handler=search,
        body=SearchGroupsRequest,
        response=SearchGroupsResponse,
        summary="Search groups by name and member",
    ),
    Route(method="GET", path=_ONE, handler=get, response=GroupResponse, summary="Get a group with its members"),
    Route(
        method="PUT",
        path=_ONE,
        handler=put,
        body=UpdateGroupRequest,
        response=GroupResponse,
        summary="Rename a group, add members and remove members",
    ),
    Route(method="DELETE", path=_ONE, handler=delete, response=Empty, summary="Delete a group"),
    Route(
        method="PATCH",
        path="/api/v1/users/assignments",
        handler=assign,
        body=AssignGroupsRequest,
        response=Empty,
        summary="Add many users to groups and remove them from others",
    ),
)
