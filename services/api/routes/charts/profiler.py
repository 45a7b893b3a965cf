"""System metrics of trials by series (docs/reference/logs.md 11); the harness reports them as groups of metrics."""

from __future__ import annotations

import asyncio
from typing import Final

from sqlalchemy import select

from libs.db.any_of import any_of
from libs.db.tables.trials import trials
from libs.errors import InvalidRequest, NotFound
from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.streams import StreamResult
from services.api.http.routing import Route
from services.api.metrics.profiling import MOST_READINGS, Series, check_lengths, reports_of_series
from services.api.queries.charts.profiler import available_series, profiler_metrics
from services.api.wire.base import Empty
from services.api.wire.charts.profiler import (
    AvailableSeriesQuery,
    AvailableSeriesResponse,
    PostProfilerMetricsRequest,
    ProfilerMetricsQuery,
    ProfilerMetricsResponse,
    ProfilerMetricType,
)


async def post_metrics(call: Call[App, None, PostProfilerMetricsRequest]) -> None:
    """Everything is checked before anything is stored; what is repeated is stored once."""
    batches = call.body.batches
    for batch in batches:
        check_lengths(len(batch.values), len(batch.batches), len(batch.timestamps))
        if not batch.labels.name:
            raise InvalidRequest("labels.name: every batch must name its metric")
    if (readings := sum(len(batch.values) for batch in batches)) > MOST_READINGS:
        raise InvalidRequest(f"batches: at most {MOST_READINGS} readings per request, got {readings}")
    runs = await _present_runs(call.app, {batch.labels.trial_id for batch in batches})
    reports = [
        report
        for batch in batches
        for report in reports_of_series(
            Series(batch.labels.name, batch.labels.agent_id, batch.labels.gpu_uuid),
            batch.values,
            batch.timestamps,
            trial_id=batch.labels.trial_id,
            run=runs[batch.labels.trial_id],
            is_timing=batch.labels.metric_type is ProfilerMetricType.TIMING,
        )
    ]
    await asyncio.gather(*(call.app.metrics_writer.store(report) for report in reports))


async def _present_runs(app: App, trial_ids: set[int]) -> dict[int, int]:
    """Such reports do not say of which run they are. Raises NotFound."""
    async with app.db.read() as connection:
        rows = await connection.execute(select(trials.c.id, trials.c.run_id).where(any_of(trials.c.id, trial_ids)))
        runs = {row.id: row.run_id for row in rows}
    for trial_id in sorted(trial_ids):
        if trial_id not in runs:
            raise NotFound("trial", trial_id)
    return runs


async def get_metrics(call: Call[App, ProfilerMetricsQuery, None]) -> StreamResult:
    trial_id, query = call.path_int("trialId"), call.query
    return StreamResult(profiler_metrics(call.app.db, trial_id, query.labels, follow=query.follow))


async def get_series(call: Call[App, AvailableSeriesQuery, None]) -> StreamResult:
    return StreamResult(available_series(call.app.db, call.path_int("trialId"), follow=call.query.follow))


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/trials/profiler/metrics",
        handler=post_metrics,
        body=PostProfilerMetricsRequest,
        response=Empty,
        idempotent=True,
        summary="Store system metrics of a trial",
    ),
    Route(
        method="GET",
        path="/api/v1/trials/{trialId}/profiler/metrics",
        handler=get_metrics,
        query=ProfilerMetricsQuery,
        response=ProfilerMetricsResponse,
        stream=True,
        summary="Read or follow the system metrics of a trial by series",
    ),
    Route(
        method="GET",
        path="/api/v1/trials/{trialId}/profiler/available_series",
        handler=get_series,
        query=AvailableSeriesQuery,
        response=AvailableSeriesResponse,
        stream=True,
        summary="Read or follow which system metrics a trial has",
    ),
)
