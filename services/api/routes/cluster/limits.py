"""Limits of what users, groups and workspaces may hold: set by administrators, seen by those whom they concern."""

from __future__ import annotations

from typing import Final

from services.api.actions.cluster.limits import remove_limit, set_limit
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.cluster.limits import list_limits
from services.api.wire.base import Empty
from services.api.wire.cluster.limits import GetLimitsQuery, GetLimitsResponse, LimitResponse, SetLimitRequest


async def get_limits(call: Call[App, GetLimitsQuery, None]) -> GetLimitsResponse:
    now, use = call.app.clock.now(), call.app.period_use
    async with call.app.db.read() as connection:
        return GetLimitsResponse(limits=await list_limits(connection, call.query, rights=call.rights, use=use, now=now))


async def put_limit(call: Call[App, None, SetLimitRequest]) -> LimitResponse:
    app, user_id = call.app, call.principal.user_id
    made = await set_limit(app.db, app.cluster, call.body, user_id=user_id, use=app.period_use, now=app.clock.now())
    return LimitResponse(limit=made)


async def delete_limit(call: Call[App, None, None]) -> Empty:
    await remove_limit(call.app.db, call.path_int("limitId"))
    return Empty()


_ALL: Final = "/api/v1/resolute/limits"

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        handler=get_limits,
        query=GetLimitsQuery,
        response=GetLimitsResponse,
        summary="List the limits of users, groups and workspaces that concern the caller, and what is left of them",
    ),
    Route(
        method="PUT",
        path=_ALL,
        handler=put_limit,
        body=SetLimitRequest,
        response=LimitResponse,
        summary="Set how many slots a user, a group or a workspace may hold at once, or use in a period",
    ),
    Route(method="DELETE", path=f"{_ALL}/{{limitId}}", handler=delete_limit, response=Empty, summary="Remove a limit"),
)
