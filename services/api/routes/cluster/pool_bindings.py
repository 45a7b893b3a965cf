"""Bindings of pools to workspaces: who may use which."""

from __future__ import annotations

from typing import Final

from services.api.actions.cluster import pool_bindings as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.pagination import sql_page
from services.api.wire.base import Empty
from services.api.wire.cluster.pool_bindings import PoolBindingRequest, PoolBindingsQuery, PoolBindingsResponse


async def get_bindings(call: Call[App, PoolBindingsQuery, None]) -> PoolBindingsResponse:
    pool = call.path_str("resourcePoolName")
    async with call.app.db.read() as connection:
        await actions.check_known(connection, call.app.cluster, pool)
        found = sorted(await actions.bound_workspaces(connection, pool))
    page = sql_page(len(found), offset=call.query.offset, limit=call.query.limit)
    return PoolBindingsResponse(workspace_ids=found[page.start : page.start + page.limit], pagination=page.pagination)


async def post_bindings(call: Call[App, None, PoolBindingRequest]) -> Empty:
    await actions.bind(call.app.db, call.app.cluster, call.path_str("resourcePoolName"), call.body)
    return Empty()


async def put_bindings(call: Call[App, None, PoolBindingRequest]) -> Empty:
    await actions.replace_bindings(call.app.db, call.app.cluster, call.path_str("resourcePoolName"), call.body)
    return Empty()


async def delete_bindings(call: Call[App, None, PoolBindingRequest]) -> Empty:
    await actions.unbind(call.app.db, call.app.cluster, call.path_str("resourcePoolName"), call.body)
    return Empty()


_PATH: Final = "/api/v1/resource-pools/{resourcePoolName}/workspace-bindings"

ROUTES: Final = (
    Route(
        method="GET",
        path=_PATH,
        handler=get_bindings,
        query=PoolBindingsQuery,
        response=PoolBindingsResponse,
        summary="List the workspaces that a pool is bound to",
    ),
    Route(
        method="POST",
        path=_PATH,
        handler=post_bindings,
        body=PoolBindingRequest,
        response=Empty,
        summary="Bind a pool to more workspaces",
    ),
    Route(
        method="PUT",
        path=_PATH,
        handler=put_bindings,
        body=PoolBindingRequest,
        response=Empty,
        summary="Replace the workspaces that a pool is bound to",
    ),
    Route(
        method="DELETE",
        path=_PATH,
        handler=delete_bindings,
        body=PoolBindingRequest,
        response=Empty,
        summary="Remove bindings of a pool to workspaces",
    ),
)
