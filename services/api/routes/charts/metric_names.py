"""List the names of the metrics of a trial, for whoever chooses what to draw."""

from __future__ import annotations

from typing import Final

from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.charts.metric_names import find_metric_names
from services.api.wire.charts.metric_names import GetTrialMetricNamesQuery, GetTrialMetricNamesResponse


async def get_metric_names(call: Call[App, GetTrialMetricNamesQuery, None]) -> GetTrialMetricNamesResponse:
    return await find_metric_names(call.app.db, call.path_int("trialId"), call.query)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/resolute/trials/{trialId}/metric-names",
        handler=get_metric_names,
        query=GetTrialMetricNamesQuery,
        response=GetTrialMetricNamesResponse,
        summary="List the names of the metrics that a trial has reported",
    ),
)
