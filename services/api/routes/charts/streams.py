"""Streams that charts of an experiment are drawn from, while it runs (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from typing import Final

from libs.errors import InvalidRequest
from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.streams import StreamResult
from services.api.http.routing import Route
from services.api.queries.charts.batches import MetricBatches
from services.api.queries.charts.following import follow
from services.api.queries.charts.groups import one_group
from services.api.queries.charts.names import MetricNames
from services.api.queries.charts.sample import TrialsSample
from services.api.queries.charts.snapshot import TrialsSnapshot
from services.api.wire.charts.streams import (
    ChartQuery,
    MetricBatchesResponse,
    MetricNamesQuery,
    MetricNamesResponse,
    TrialsSampleQuery,
    TrialsSampleResponse,
    TrialsSnapshotQuery,
    TrialsSnapshotResponse,
)


async def metric_names(call: Call[App, MetricNamesQuery, None]) -> StreamResult:
    query, db = call.query, call.app.db
    if not query.ids:
        raise InvalidRequest("ids: must specify at least one experiment")
    return StreamResult(follow(db, query.ids, MetricNames(db, query.ids).look, period_s=query.period_seconds))


async def metric_batches(call: Call[App, ChartQuery, None]) -> StreamResult:
    query, db, experiment_id = call.query, call.app.db, call.path_int("experimentId")
    group = one_group(query.group, query.metric_type, query.metric_name)
    batches = MetricBatches(db, experiment_id, group=group, name=query.metric_name)
    return StreamResult(follow(db, [experiment_id], batches.look, period_s=query.period_seconds))


async def trials_snapshot(call: Call[App, TrialsSnapshotQuery, None]) -> StreamResult:
    query, db, experiment_id = call.query, call.app.db, call.path_int("experimentId")
    group = one_group(query.group, query.metric_type, query.metric_name)
    snapshot = TrialsSnapshot(db, experiment_id, group=group, query=query)
    return StreamResult(follow(db, [experiment_id], snapshot.look, period_s=query.period_seconds))


async def trials_sample(call: Call[App, TrialsSampleQuery, None]) -> StreamResult:
    query, db, experiment_id = call.query, call.app.db, call.path_int("experimentId")
    group = one_group(query.group, query.metric_type, query.metric_name)
    sample = TrialsSample(db, experiment_id, group=group, query=query)
    return StreamResult(follow(db, [experiment_id], sample.look, period_s=query.period_seconds))


_OF_EXPERIMENT: Final = "/api/v1/experiments/{experimentId}/metrics-stream"

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/experiments/metrics-stream/metric-names",
        handler=metric_names,
        query=MetricNamesQuery,
        response=MetricNamesResponse,
        stream=True,
        summary="Read or follow the names of the metrics that experiments have",
    ),
    Route(
        method="GET",
        path=f"{_OF_EXPERIMENT}/batches",
        handler=metric_batches,
        query=ChartQuery,
        response=MetricBatchesResponse,
        stream=True,
        summary="Read or follow at which numbers of batches a metric was reported",
    ),
    Route(
        method="GET",
        path=f"{_OF_EXPERIMENT}/trials-snapshot",
        handler=trials_snapshot,
        query=TrialsSnapshotQuery,
        response=TrialsSnapshotResponse,
        stream=True,
        summary="Read or follow a metric of all trials at one point of their training",
    ),
    Route(
        method="GET",
        path=f"{_OF_EXPERIMENT}/trials-sample",
        handler=trials_sample,
        query=TrialsSampleQuery,
        response=TrialsSampleResponse,
        stream=True,
        summary="Read or follow the best trials of a search and their metrics over time",
    ),
)
