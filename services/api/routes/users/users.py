"""Users: list, look at, create and change them and their settings."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from libs.db.tables.users import user_settings
from libs.errors import InvalidRequest, ResoluteError
from services.api.actions.users import users as actions
from services.api.actions.users.linkable import check_linkable
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.pagination import list_page
from services.api.queries.users.users import UserNotFound, list_users, user_by_id, user_by_name, wire_user
from services.api.wire.base import Empty
from services.api.wire.users.users import (
    GetUsersQuery,
    GetUsersResponse,
    PatchUser,
    PatchUsersRequest,
    PatchUsersResponse,
    PostUserRequest,
    UserActionResult,
    UserResponse,
    UserSetting,
    UserSettings,
)

MAX_SETTINGS_BYTES: Final = 1024 * 1024
"""Of one request."""
MOST_SETTINGS: Final = 1_000
"""Of one user."""
LONGEST_SETTING_NAME: Final = 256
"""In characters, of a key and of a storage path: the index of the table has to hold both."""


async def get_users(call: Call[App, GetUsersQuery, None]) -> GetUsersResponse:
    if call.query.role_id_assigned_directly_to_user and not call.rights.by_roles:
        raise InvalidRequest("roleIdAssignedDirectlyToUser: cannot filter by role, roles are not enabled")
    async with call.app.db.read_prepared() as connection:
        found = await list_users(connection, call.query)
    page, pagination = list_page(found, offset=call.query.offset, limit=call.query.limit)
    return GetUsersResponse(users=page, pagination=pagination)


async def get_user(call: Call[App, None, None]) -> UserResponse:
    async with call.app.db.read_prepared() as connection:
        return UserResponse(user=wire_user(await user_by_id(connection, call.path_int("userId"))))


async def get_user_by_username(call: Call[App, None, None]) -> UserResponse:
    async with call.app.db.read_prepared() as connection:
        row = await user_by_name(connection, call.path_str("username"))
    if row is None:
        raise UserNotFound
    return UserResponse(user=wire_user(row))


async def post_user(call: Call[App, None, PostUserRequest]) -> UserResponse:
    body = call.body
    check_linkable(body.user.agent_user_group, call.app.capacity.all())
    row = await actions.create_user(
        call.app.db, body.user, password=body.password, is_hashed=body.is_hashed, now=call.app.clock.now()
    )
    return UserResponse(user=wire_user(row))


async def patch_user(call: Call[App, None, PatchUser]) -> UserResponse:
    user_id = call.path_int("userId")
    check_linkable(call.body.agent_user_group, call.app.capacity.all())
    row = await actions.patch_user(call.app.db, user_id, call.body, now=call.app.clock.now())
    call.app.sessions.forget()
    return UserResponse(user=wire_user(row))


async def patch_users(call: Call[App, None, PatchUsersRequest]) -> PatchUsersResponse:
    results = []
    for user_id in call.body.user_ids:
        try:
            change = PatchUser(active=call.body.activate)
            await actions.patch_user(call.app.db, user_id, change, now=call.app.clock.now())
            results.append(UserActionResult(id=user_id))
        except ResoluteError as error:
            results.append(UserActionResult(id=user_id, error=str(error)))
    call.app.sessions.forget()
    return PatchUsersResponse(results=results)


async def set_user_password(call: Call[App, None, str]) -> UserResponse:
    """The body is the plain password, as a bare JSON string; no body is a blank password."""
    user_id = call.path_int("userId")
    change = PatchUser(password=call.body if isinstance(call.body, str) else "", is_hashed=False)
    row = await actions.patch_user(call.app.db, user_id, change, now=call.app.clock.now())
    call.app.sessions.forget()
    return UserResponse(user=wire_user(row))


async def get_settings(call: Call[App, None, None]) -> UserSettings:
    query = select(user_settings).where(user_settings.c.user_id == call.principal.user_id)
    async with call.app.db.read() as connection:
        rows = (await connection.execute(query.order_by(user_settings.c.storage_path, user_settings.c.key))).mappings()
        return UserSettings(
            settings=[UserSetting(key=row["key"], storage_path=row["storage_path"], value=row["value"]) for row in rows]
        )


async def post_settings(call: Call[App, None, UserSettings]) -> Empty:
    """Each setting replaces the one of its name; an empty value removes it."""
    for setting in call.body.settings:
        for name, text in (("key", setting.key), ("storagePath", setting.storage_path)):
            if len(text) > LONGEST_SETTING_NAME:
                raise InvalidRequest(f"{name}: must not be longer than {LONGEST_SETTING_NAME} characters")
    async with call.app.db.transaction() as connection:
        for setting in call.body.settings:
            key = {
                "user_id": call.principal.user_id,
                "storage_path": setting.storage_path,
                "key": setting.key,
            }
            if setting.value:
                upsert = insert(user_settings).values(**key, value=setting.value)
                await connection.execute(
                    upsert.on_conflict_do_update(index_elements=list(key), set_={"value": setting.value})
                )
            else:
                await connection.execute(delete(user_settings).filter_by(**key))
        mine = select(func.count()).select_from(user_settings).where(user_settings.c.user_id == call.principal.user_id)
        if (await connection.scalar(mine) or 0) > MOST_SETTINGS:
            raise InvalidRequest(f"settings: a user may have {MOST_SETTINGS}, and no more")
    return Empty()


async def reset_settings(call: Call[App, None, None]) -> Empty:
    async with call.app.db.transaction() as connection:
        await connection.execute(delete(user_settings).where(user_settings.c.user_id == call.principal.user_id))
    return Empty()


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/users",
        handler=get_users,
        query=GetUsersQuery,
        response=GetUsersResponse,
        summary="List users",
    ),
    Route(
        method="POST",
        path="/api/v1/users",
        handler=post_user,
        body=PostUserRequest,
        response=UserResponse,
        summary="Create a user",
    ),
    Route(
        method="PATCH",
        path="/api/v1/users",
        handler=patch_users,
        body=PatchUsersRequest,
        response=PatchUsersResponse,
        summary="Activate or deactivate many users",
    ),
    Route(
        method="GET",
        path="/api/v1/users/setting",
        handler=get_settings,
        response=UserSettings,
        summary="List the settings of the caller",
    ),
    Route(
        method="POST",
        path="/api/v1/users/setting",
        handler=post_settings,
        body=UserSettings,
        response=Empty,
        max_body_bytes=MAX_SETTINGS_BYTES,
        summary="Change settings of the caller",
    ),
    Route(
        method="POST",
        path="/api/v1/users/setting/reset",
        handler=reset_settings,
        response=Empty,
        summary="Remove all settings of the caller",
    ),
    Route(method="GET", path="/api/v1/users/{userId}", handler=get_user, response=UserResponse, summary="Get a user"),
    Route(
        method="PATCH",
        path="/api/v1/users/{userId}",
        handler=patch_user,
        body=PatchUser,
        response=UserResponse,
        summary="Change a user",
    ),
    Route(
        method="POST",
        path="/api/v1/users/{userId}/password",
        handler=set_user_password,
        body=str,
        response=UserResponse,
        summary="Set the password of a user",
    ),
    Route(
        method="GET",
        path="/api/v1/users/{username}/by-username",
        handler=get_user_by_username,
        response=UserResponse,
        summary="Get a user by name",
    ),
)
