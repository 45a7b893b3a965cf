"""The job queue."""

from __future__ import annotations

from typing import Final

from libs.errors import InvalidRequest
from libs.natural_order.keys import natural_sort_key
from services.api.access.rights.actions import Action
from services.api.actions.cluster.jobs import update_queue
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.cluster.jobs import days_in_queue, in_line, load_queue, stats_by_pool, wire_jobs
from services.api.queries.cluster.visible_jobs import visible_jobs
from services.api.queries.pagination import list_bounds
from services.api.waits.scheduler import wait_until_reconciled
from services.api.wire.base import Empty, Pagination
from services.api.wire.cluster.jobs import (
    GetJobsQuery,
    GetJobsResponse,
    GetJobsV2Response,
    GetStatsQuery,
    GetStatsResponse,
    Job,
    LimitedJob,
    PoolQueue,
    UpdateQueueRequest,
    VisibleJob,
)
from services.api.wire.cluster.pools import QueueStats
from services.api.wire.ordering import OrderBy

DEFAULT_LIMIT: Final = 100


async def get_jobs_v2(call: Call[App, GetJobsQuery, None]) -> GetJobsV2Response:
    jobs, visible, pagination = await _page(call)
    shown = [VisibleJob(full=job) if job.job_id in visible else VisibleJob(limited=_limited(job)) for job in jobs]
    return GetJobsV2Response(jobs=shown, pagination=pagination)


async def get_jobs(call: Call[App, GetJobsQuery, None]) -> GetJobsResponse:
    jobs, _, pagination = await _page(call, visible_only=True)
    return GetJobsResponse(jobs=jobs, pagination=pagination)


def _limited(job: Job) -> LimitedJob:
    return LimitedJob(**{name: getattr(job, name) for name in LimitedJob.__struct_fields__})


async def get_stats(call: Call[App, GetStatsQuery, None]) -> GetStatsResponse:
    """Pools that do not exist get no entry."""
    app, wanted = call.app, set(call.query.resource_pools)
    names = sorted((pool.pool_name for pool in app.cluster.resource_pools), key=natural_sort_key)
    async with app.db.read() as connection:
        stats = stats_by_pool(await load_queue(connection, app.cluster))
        results = [
            PoolQueue(
                resource_pool=name,
                stats=stats.get(name, QueueStats()),
                aggregates=await days_in_queue(connection, app.cluster, name, app.clock.now()),
            )
            for name in names
            if not wanted or name in wanted
        ]
    return GetStatsResponse(results=results)


async def update_jobs(call: Call[App, None, UpdateQueueRequest]) -> Empty:
    app = call.app
    if app.cluster.security.authz.strict_job_queue_control:
        call.rights.require(Action.CONTROL_QUEUE_STRICTLY)
    changed = await update_queue(app.db, call.body.updates, clock=app.clock, cluster=app.cluster, capacity=app.capacity)
    await wait_until_reconciled(app.bus, *changed)
    return Empty()


async def _page(
    call: Call[App, GetJobsQuery, None], *, visible_only: bool = False
) -> tuple[list[Job], frozenset[str], Pagination]:
    """Jobs, and ids of those that the caller may see whole. Places in the queue count everybody's jobs, also with
    ``visible_only``."""
    app, query = call.app, call.query
    pool = query.resource_pool or app.cluster.resource_manager.default_compute_resource_pool
    if app.cluster.pool(pool) is None:
        raise InvalidRequest(f"cannot find resource pool {pool}")
    async with app.db.read() as connection:
        queue = await load_queue(connection, app.cluster, pool)
        visible = await visible_jobs(connection, call.rights, queue)
        standings = in_line(queue, app.cluster, pool)
        if query.states:
            standings = [standing for standing in standings if standing.job.state in query.states]
        if visible_only:
            standings = [standing for standing in standings if standing.job.job_id in visible]
        standings.sort(key=lambda standing: (standing.jobs_ahead, standing.job.job_id))
        if query.order_by is OrderBy.DESC:
            standings.reverse()
        page = list_bounds(len(standings), offset=query.offset, limit=query.limit or DEFAULT_LIMIT)
        return await wire_jobs(connection, standings[page.start_index : page.end_index]), visible, page


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/job-queues-v2",
        handler=get_jobs_v2,
        query=GetJobsQuery,
        response=GetJobsV2Response,
        summary="List the jobs of a pool in the order of its queue",
    ),
    Route(
        method="GET",
        path="/api/v1/job-queues",
        handler=get_jobs,
        query=GetJobsQuery,
        response=GetJobsResponse,
        summary="List the jobs of a pool with all details",
    ),
    Route(
        method="GET",
        path="/api/v1/job-queues/stats",
        handler=get_stats,
        query=GetStatsQuery,
        response=GetStatsResponse,
        summary="Count the jobs of pools by state",
    ),
    Route(
        method="POST",
        path="/api/v1/job-queues",
        handler=update_jobs,
        body=UpdateQueueRequest,
        response=Empty,
        summary="Change the priority, the weight or the place of jobs",
    ),
)
