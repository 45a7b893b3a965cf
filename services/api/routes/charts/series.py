"""Series of several trials side by side, and of all trials that work with a checkpoint or a version of a model."""

from __future__ import annotations

from typing import Final

from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.charts.by_source import metrics_by_checkpoint, metrics_by_model_version
from services.api.queries.charts.series import compare_trials
from services.api.wire.charts.by_source import MetricsBySourceQuery, MetricsBySourceResponse
from services.api.wire.charts.series import CompareTrialsQuery, CompareTrialsResponse


async def get_series(call: Call[App, CompareTrialsQuery, None]) -> CompareTrialsResponse:
    app = call.app
    found = await compare_trials(app.db, call.query, now=app.clock.now(), maker=app.level_maker, kept=app.kept_points)
    return CompareTrialsResponse(trials=found)


async def get_by_checkpoint(call: Call[App, MetricsBySourceQuery, None]) -> MetricsBySourceResponse:
    async with call.app.db.read() as connection:
        found = await metrics_by_checkpoint(connection, call.path_str("checkpointUuid"), call.query, call.rights)
    return MetricsBySourceResponse(metrics=found)


async def get_by_model_version(call: Call[App, MetricsBySourceQuery, None]) -> MetricsBySourceResponse:
    name, number = call.path_str("modelName"), call.path_int("modelVersionNum")
    async with call.app.db.read() as connection:
        found = await metrics_by_model_version(connection, name, number, call.query, call.rights)
    return MetricsBySourceResponse(metrics=found)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/trials/time-series",
        handler=get_series,
        query=CompareTrialsQuery,
        response=CompareTrialsResponse,
        summary="Compare metrics of several trials over their batches, with few enough points to draw",
    ),
    Route(
        method="GET",
        path="/api/v1/checkpoints/{checkpointUuid}/metrics",
        handler=get_by_checkpoint,
        query=MetricsBySourceQuery,
        response=MetricsBySourceResponse,
        summary="Get metrics of the trials that work with a checkpoint",
    ),
    Route(
        method="GET",
        path="/api/v1/models/{modelName}/versions/{modelVersionNum}/metrics",
        handler=get_by_model_version,
        query=MetricsBySourceQuery,
        response=MetricsBySourceResponse,
        summary="Get metrics of the trials that work with a version of a model",
    ),
)
