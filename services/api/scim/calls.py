"""What each call does. It is loaded at the first of them (``endpoint.py``), with the library that it stands on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from libs.errors import InvalidRequest
from services.api.scim import discovery, filters, group_changes, groups, user_changes, users
from services.api.scim.endpoint import ScimAnswer, ScimCall
from services.api.scim.errors import no_such
from services.api.scim.models import ScimGroup, ScimUser
from services.api.scim.resources import group_resource, list_response, user_resource

USUAL_COUNT: Final = 100
_LAST: Final = 10**9
"""No list is longer; PostgreSQL counts to 64 bits, and clients write what they want."""


def _page(call: ScimCall) -> tuple[int, int]:
    """Where a list begins, counted from 1, and how long it may be (RFC 7644 3.4.2.4). Raises InvalidRequest."""
    start = _number(call, "startIndex", 1)
    count = _number(call, "count", USUAL_COUNT)
    return max(1, min(start, _LAST)), max(0, min(count, discovery.MOST_LISTED))


def _number(call: ScimCall, name: str, usual: int) -> int:
    given = call.query.get(name, "").strip()
    if not given:
        return usual
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise InvalidRequest(f"{name}: must be a number")
    # What is longer than any list there is needs no exact number.
    value = int(digits) if len(digits) < len(str(_LAST)) else _LAST
    return -value if given.startswith("-") else value


async def list_users(call: ScimCall) -> ScimAnswer:
    wanted = filters.parse(call.query.get("filter", ""), users.SEARCHED, schema=str(ScimUser.__schema__))
    start, count = _page(call)
    async with call.app.db.read() as connection:
        rows, total = await users.list_users(connection, wanted, offset=start - 1, limit=count)
    found = [user_resource(row, base=call.base) for row in rows]
    return ScimAnswer(list_response(found, total=total, start=start))


async def get_user(call: ScimCall) -> ScimAnswer:
    async with call.app.db.read() as connection:
        return _user(call, await users.find_user(connection, call.ident))


async def create_user(call: ScimCall) -> ScimAnswer:
    row = await users.create_user(call.app.db, user_changes.described(call.body), now=call.app.clock.now())
    call.app.sessions.forget()
    return _user(call, row, status=HTTPStatus.CREATED)


async def replace_user(call: ScimCall) -> ScimAnswer:
    return await _change_user(call, patch=False)


async def patch_user(call: ScimCall) -> ScimAnswer:
    return await _change_user(call, patch=True)


async def _change_user(call: ScimCall, *, patch: bool) -> ScimAnswer:
    async with call.app.db.transaction() as connection:
        row = await users.find_user(connection, call.ident, lock=True)
        before = users.user_of(row)
        body = call.body
        if patch:
            # In a thread: the longest one, of a thousand attributes and a hundred addresses, takes most of a minute.
            wanted = await asyncio.to_thread(user_changes.patched, before, body)
        else:
            wanted = user_changes.described(body, before=before)
        row = await users.change(connection, row, wanted, now=call.app.clock.now())
    call.app.sessions.forget()
    return _user(call, row)


async def remove_user(call: ScimCall) -> ScimAnswer:
    await users.remove_user(call.app.db, call.ident, now=call.app.clock.now())
    call.app.sessions.forget()
    return ScimAnswer(None, HTTPStatus.NO_CONTENT)


def _user(call: ScimCall, row: users.Row, *, status: int = HTTPStatus.OK) -> ScimAnswer:
    resource = user_resource(row, base=call.base)
    return ScimAnswer(resource, status, {"Location": resource["meta"]["location"]})


async def list_groups(call: ScimCall) -> ScimAnswer:
    wanted = filters.parse(call.query.get("filter", ""), groups.SEARCHED, schema=str(ScimGroup.__schema__))
    start, count = _page(call)
    async with call.app.db.read() as connection:
        rows, total = await groups.list_groups(connection, wanted, offset=start - 1, limit=count)
        members: groups.Members = {}
        if _shows_members(call):
            members = await groups.members_of(connection, [row["id"] for row in rows])
    found = [_group_of(call, row, members) for row in rows]
    return ScimAnswer(list_response(found, total=total, start=start))


async def get_group(call: ScimCall) -> ScimAnswer:
    async with call.app.db.read() as connection:
        return await _group(call, connection, await groups.find_group(connection, call.ident))


async def create_group(call: ScimCall) -> ScimAnswer:
    row = await groups.create_group(call.app.db, group_changes.described(call.body), now=call.app.clock.now())
    async with call.app.db.read() as connection:
        return await _group(call, connection, row, status=HTTPStatus.CREATED)


async def replace_group(call: ScimCall) -> ScimAnswer:
    return await _change_group(call, group_changes.described(call.body))


async def patch_group(call: ScimCall) -> ScimAnswer:
    change = await asyncio.to_thread(group_changes.patch, call.body)  # paths are parsed, of which there may be many
    return await _change_group(call, change)


async def _change_group(call: ScimCall, change: group_changes.GroupChange) -> ScimAnswer:
    row = await groups.change_group(call.app.db, call.ident, change, now=call.app.clock.now())
    async with call.app.db.read() as connection:
        return await _group(call, connection, row)


async def remove_group(call: ScimCall) -> ScimAnswer:
    await groups.remove_group(call.app.db, call.ident, now=call.app.clock.now())
    return ScimAnswer(None, HTTPStatus.NO_CONTENT)


async def _group(call: ScimCall, connection: Any, row: groups.Row, *, status: int = HTTPStatus.OK) -> ScimAnswer:
    members = await groups.members_of(connection, [row["id"]]) if _shows_members(call) else {}
    resource = _group_of(call, row, members)
    return ScimAnswer(resource, status, {"Location": resource["meta"]["location"]})


def _group_of(call: ScimCall, row: groups.Row, members: groups.Members) -> dict[str, Any]:
    shown = members.get(row["id"], ()) if _shows_members(call) else None
    return group_resource(row, shown, base=call.base)


def _shows_members(call: ScimCall) -> bool:
    """Groups may be large, and who looks for their names says that it wants nothing else (RFC 7644 3.9)."""
    return "members" not in {name.strip().lower() for name in call.query.get("excludedAttributes", "").split(",")}


async def service_provider_config(call: ScimCall) -> ScimAnswer:
    return ScimAnswer(discovery.service_provider_config(auth=call.app.cluster.scim.auth.type, base=call.base))


async def list_resource_types(call: ScimCall) -> ScimAnswer:
    return _whole(discovery.resource_types(base=call.base))


async def get_resource_type(call: ScimCall) -> ScimAnswer:
    return _one("ResourceType", call.ident, discovery.resource_types(base=call.base))


async def list_schemas(call: ScimCall) -> ScimAnswer:
    return _whole(discovery.schemas(base=call.base))


async def get_schema(call: ScimCall) -> ScimAnswer:
    return _one("Schema", call.ident, discovery.schemas(base=call.base))


def _whole(found: Sequence[dict[str, Any]]) -> ScimAnswer:
    return ScimAnswer(list_response(found, total=len(found), start=1))


def _one(kind: str, ident: str, found: Sequence[dict[str, Any]]) -> ScimAnswer:
    for each in found:
        if each["id"].lower() == ident.lower():
            return ScimAnswer(each)
    raise no_such(kind, ident)
