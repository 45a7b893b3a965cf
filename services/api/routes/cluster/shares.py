"""Weights of the shares of users, groups and workspaces: set by administrators, seen by those whom they concern."""

from __future__ import annotations

from typing import Final

from services.api.actions.cluster.shares import remove_share, set_share
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.cluster.share_use import list_used
from services.api.queries.cluster.shares import list_shares
from services.api.wire.base import Empty
from services.api.wire.cluster.shares import GetSharesQuery, GetSharesResponse, SetShareRequest, ShareResponse


async def get_shares(call: Call[App, GetSharesQuery, None]) -> GetSharesResponse:
    app = call.app
    async with app.db.read() as connection:
        return GetSharesResponse(
            shares=await list_shares(connection, call.query, rights=call.rights),
            used=await list_used(
                connection,
                call.query,
                cluster=app.cluster,
                capacity=app.capacity,
                use=app.past_use,
                rights=call.rights,
                now=app.clock.now(),
            ),
        )


async def put_share(call: Call[App, None, SetShareRequest]) -> ShareResponse:
    user_id, now = call.principal.user_id, call.app.clock.now()
    return ShareResponse(share=await set_share(call.app.db, call.body, user_id=user_id, now=now))


async def delete_share(call: Call[App, None, None]) -> Empty:
    await remove_share(call.app.db, call.path_int("shareId"))
    return Empty()


_ALL: Final = "/api/v1/resolute/shares"

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        handler=get_shares,
        query=GetSharesQuery,
        response=GetSharesResponse,
        summary="List the weights of users, groups and workspaces under fair share that concern the caller",
    ),
    Route(
        method="PUT",
        path=_ALL,
        handler=put_share,
        body=SetShareRequest,
        response=ShareResponse,
        summary="Set the weight of a user, a group or a workspace under fair share",
    ),
    Route(
        method="DELETE",
        path=f"{_ALL}/{{shareId}}",
        handler=delete_share,
        response=Empty,
        summary="Remove the weight of a user, a group or a workspace",
    ),
)
