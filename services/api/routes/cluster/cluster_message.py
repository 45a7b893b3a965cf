"""Message that administrators show to everybody."""

from __future__ import annotations

from typing import Final

from services.api.actions.cluster.cluster_message import clear_message, read_message, set_message
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.wire.base import Empty
from services.api.wire.cluster.cluster_message import GetClusterMessageResponse, SetClusterMessageRequest


async def get_cluster_message(call: Call[App, None, None]) -> GetClusterMessageResponse:
    """Also one that is not shown yet."""
    found = await read_message(call.app.db, now=call.app.clock.now(), scheduled=True)
    return GetClusterMessageResponse(cluster_message=found)


async def set_cluster_message(call: Call[App, None, SetClusterMessageRequest]) -> Empty:
    await set_message(call.app.db, call.body, user_id=call.principal.user_id, now=call.app.clock.now())
    return Empty()


async def delete_cluster_message(call: Call[App, None, None]) -> Empty:
    await clear_message(call.app.db)
    return Empty()


_PATH: Final = "/api/v1/master/cluster_message"

ROUTES: Final = (
    Route(
        method="GET",
        path=_PATH,
        handler=get_cluster_message,
        response=GetClusterMessageResponse,
        summary="Get the message of the cluster, also before it is shown",
    ),
    Route(
        method="PUT",
        path=_PATH,
        handler=set_cluster_message,
        body=SetClusterMessageRequest,
        response=Empty,
        summary="Set the message of the cluster",
    ),
    Route(
        method="DELETE",
        path=_PATH,
        handler=delete_cluster_message,
        response=Empty,
        summary="Remove the message of the cluster",
    ),
)
