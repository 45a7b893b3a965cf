"""Resource pools."""

from __future__ import annotations

from typing import Final

from libs.natural_order.keys import natural_sort_key
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.cluster.agents import load_overrides
from services.api.queries.cluster.jobs import load_queue, stats_by_pool
from services.api.queries.cluster.pools import wire_pool
from services.api.queries.pagination import list_page
from services.api.queries.workspaces.available_pools import bound_pools, hidden_pools
from services.api.wire.cluster.pools import GetPoolsQuery, GetPoolsResponse, QueueStats, ResourceManagersResponse


async def get_pools(call: Call[App, GetPoolsQuery, None]) -> GetPoolsResponse:
    """Pools by name, without those of workspaces that the caller may not see; ``unbound`` ones are for everybody."""
    app = call.app
    async with app.db.read() as connection:
        left_out = await (bound_pools(connection) if call.query.unbound else hidden_pools(connection, call.rights))
        overrides = await load_overrides(connection)
        stats = stats_by_pool(await load_queue(connection, app.cluster))
    pools = [
        wire_pool(
            pool,
            app.cluster,
            app.capacity.of(pool.pool_name),
            overrides,
            stats.get(pool.pool_name, QueueStats()),
        )
        for pool in sorted(app.cluster.resource_pools, key=lambda pool: natural_sort_key(pool.pool_name))
        if pool.pool_name not in left_out
    ]
    page, pagination = list_page(pools, offset=call.query.offset, limit=call.query.limit)
    return GetPoolsResponse(resource_pools=page, pagination=pagination)


async def get_kubernetes_managers(call: Call[App, None, None]) -> ResourceManagersResponse:
    manager = call.app.cluster.resource_manager
    return ResourceManagersResponse(resource_managers=[manager.cluster_name] if manager.is_kubernetes else [])


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/resource-pools",
        handler=get_pools,
        query=GetPoolsQuery,
        response=GetPoolsResponse,
        summary="List resource pools",
    ),
    Route(
        method="GET",
        path="/api/v1/k8s-resource-managers",
        handler=get_kubernetes_managers,
        response=ResourceManagersResponse,
        summary="List the names of the clusters",
    ),
)
