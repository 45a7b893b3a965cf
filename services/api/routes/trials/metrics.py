"""Metrics: reports from training code, and reading them back (docs/reference/experiments.md 9)."""

from __future__ import annotations

from typing import Final

from libs.errors import NotFound
from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.replies.streams import StreamResult
from services.api.http.routing import Route
from services.api.metrics.groups import TRAINING, VALIDATION
from services.api.metrics.report import make_report
from services.api.queries.trials.metrics import best_searcher_metric, read_metrics
from services.api.queries.trials.workloads import list_workloads
from services.api.routes.trials.long_lists import is_long, send_by_pages
from services.api.wire.base import Empty, double
from services.api.wire.trials.metrics import (
    BestSearcherMetricResponse,
    GetMetricsQuery,
    GetMetricsResponse,
    GetWorkloadsQuery,
    GetWorkloadsResponse,
    ReportedMetrics,
    ReportMetricsRequest,
    TrialMetrics,
)

_NOTHING: Final = ReportedMetrics()


async def post_metrics(call: Call[App, None, ReportMetricsRequest]) -> None:
    await _store(call.app, call.path_int("trialId"), call.body.group, call.body.metrics or TrialMetrics())


async def post_training_metrics(call: Call[App, None, TrialMetrics]) -> None:
    await _store(call.app, call.path_int("trialId"), TRAINING, call.body)


async def post_validation_metrics(call: Call[App, None, TrialMetrics]) -> None:
    await _store(call.app, call.path_int("trialId"), VALIDATION, call.body)


async def _store(app: App, trial_id: int, group: str, reported: TrialMetrics) -> None:
    numbers = reported.metrics or _NOTHING
    report = make_report(
        trial_id=trial_id,
        run=reported.trial_run_id,
        group=group,
        step=reported.steps_completed,
        end_time=reported.report_time or app.clock.now(),
        avg=numbers.avg_metrics or {},
        batches=numbers.batch_metrics,
    )
    await app.metrics_writer.store(report)


async def get_metrics(call: Call[App, GetMetricsQuery, None]) -> StreamResult:
    return _stream(call, call.query.group)


async def get_training_metrics(call: Call[App, GetMetricsQuery, None]) -> StreamResult:
    return _stream(call, TRAINING)


async def get_validation_metrics(call: Call[App, GetMetricsQuery, None]) -> StreamResult:
    return _stream(call, VALIDATION)


def _stream(call: Call[App, GetMetricsQuery, None], group: str) -> StreamResult:
    return StreamResult(read_metrics(call.app.db, call.query.trial_ids, group=group, size=call.query.size))


async def get_workloads(call: Call[App, GetWorkloadsQuery, None]) -> GetWorkloadsResponse | RawResponse:
    if is_long(call):
        return await send_by_pages(call)
    async with call.app.db.read() as connection:
        workloads, pagination = await list_workloads(
            connection, call.path_int("trialId"), call.query, call.app.landmarks
        )
    return GetWorkloadsResponse(workloads=workloads, pagination=pagination)


class NoValidations(NotFound):
    """Clients take a 404 for "there is none yet"."""

    def __init__(self) -> None:
        Exception.__init__(self, "no validations for experiment")


async def get_best_searcher_metric(call: Call[App, None, None]) -> BestSearcherMetricResponse:
    async with call.app.db.read() as connection:
        best = await best_searcher_metric(connection, call.path_int("experimentId"))
    if best is None:
        raise NoValidations
    return BestSearcherMetricResponse(metric=double(best))


_TRIAL: Final = "/api/v1/trials/{trialId}"
_RAW: Final = "/api/v1/trials/metrics"

ROUTES: Final = (
    Route(
        method="POST",
        path=f"{_TRIAL}/metrics",
        handler=post_metrics,
        body=ReportMetricsRequest,
        response=Empty,
        idempotent=True,
        summary="Report metrics of a trial in any group",
    ),
    Route(
        method="POST",
        path=f"{_TRIAL}/training_metrics",
        handler=post_training_metrics,
        body=TrialMetrics,
        response=Empty,
        idempotent=True,
        summary="Report training metrics of a trial",
    ),
    Route(
        method="POST",
        path=f"{_TRIAL}/validation_metrics",
        handler=post_validation_metrics,
        body=TrialMetrics,
        response=Empty,
        idempotent=True,
        summary="Report validation metrics of a trial",
    ),
    Route(
        method="GET",
        path=f"{_RAW}/trial_metrics",
        handler=get_metrics,
        query=GetMetricsQuery,
        response=GetMetricsResponse,
        stream=True,
        summary="Read the reported metrics of trials in any group",
    ),
    Route(
        method="GET",
        path=f"{_RAW}/training_metrics",
        handler=get_training_metrics,
        query=GetMetricsQuery,
        response=GetMetricsResponse,
        stream=True,
        summary="Read the reported training metrics of trials",
    ),
    Route(
        method="GET",
        path=f"{_RAW}/validation_metrics",
        handler=get_validation_metrics,
        query=GetMetricsQuery,
        response=GetMetricsResponse,
        stream=True,
        summary="Read the reported validation metrics of trials",
    ),
    Route(
        method="GET",
        path=f"{_TRIAL}/workloads",
        handler=get_workloads,
        query=GetWorkloadsQuery,
        response=GetWorkloadsResponse,
        summary="List the training, validation and checkpoint workloads of a trial",
    ),
    Route(
        method="GET",
        path="/api/v1/experiments/{experimentId}/searcher/best_searcher_validation_metric",
        handler=get_best_searcher_metric,
        response=BestSearcherMetricResponse,
        summary="Get the best value of the searcher's metric in an experiment",
    ),
)
