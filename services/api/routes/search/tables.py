"""Searches for experiments and runs, and what tables of them can be made of (docs/reference/platform.md 8 and 9)."""

from __future__ import annotations

from typing import Final

from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.experiments.experiments import check_project_exists
from services.api.queries.search.experiments import search_experiments
from services.api.queries.search.project_columns import experiment_columns, run_columns
from services.api.queries.search.project_values import metadata_values, metric_ranges
from services.api.queries.search.runs.searches import search_runs
from services.api.wire.search.project_columns import (
    MetadataValuesResponse,
    MetricRangesResponse,
    ProjectColumnsQuery,
    ProjectColumnsResponse,
    TableType,
)
from services.api.wire.search.runs import SearchRunsResponse
from services.api.wire.search.searches import SearchExperimentsResponse, SearchRequest


async def find_experiments(call: Call[App, None, SearchRequest]) -> SearchExperimentsResponse:
    now = call.app.clock.now()
    async with call.app.db.read() as connection:
        found, pagination = await search_experiments(
            connection, call.body, rights=call.rights, now=now, parts=call.app.project_parts
        )
    return SearchExperimentsResponse(experiments=found, pagination=pagination)


async def find_runs(call: Call[App, None, SearchRequest]) -> SearchRunsResponse:
    found, pagination = await search_runs(call.app.db, call.body, rights=call.rights, parts=call.app.project_parts)
    return SearchRunsResponse(runs=found, pagination=pagination)


async def columns(call: Call[App, ProjectColumnsQuery, None]) -> ProjectColumnsResponse:
    project_id = call.path_int("id")
    of_table = run_columns if call.query.table_type is TableType.RUN else experiment_columns
    async with call.app.db.read() as connection:
        await check_project_exists(connection, project_id)
        return ProjectColumnsResponse(columns=await of_table(connection, project_id, call.app.project_parts))


async def ranges(call: Call[App, None, None]) -> MetricRangesResponse:
    project_id = call.path_int("id")
    async with call.app.db.read() as connection:
        await check_project_exists(connection, project_id)
        return MetricRangesResponse(ranges=await metric_ranges(connection, project_id, call.app.project_parts))


async def values(call: Call[App, None, None]) -> MetadataValuesResponse:
    project_id, key = call.path_int("projectId"), call.path_str("key")
    async with call.app.db.read() as connection:
        await check_project_exists(connection, project_id)
        found = await metadata_values(connection, project_id, key, call.app.project_parts)
    return MetadataValuesResponse(values=found)


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/experiments-search",
        handler=find_experiments,
        body=SearchRequest,
        response=SearchExperimentsResponse,
        summary="Search experiments by a filter",
    ),
    Route(
        method="POST",
        path="/api/v1/runs",
        handler=find_runs,
        body=SearchRequest,
        response=SearchRunsResponse,
        summary="Search runs by a filter",
    ),
    Route(
        method="GET",
        path="/api/v1/projects/{id}/columns",
        handler=columns,
        query=ProjectColumnsQuery,
        response=ProjectColumnsResponse,
        summary="List the columns that a table of a project may have",
    ),
    Route(
        method="GET",
        path="/api/v1/projects/{id}/experiments/metric-ranges",
        handler=ranges,
        response=MetricRangesResponse,
        summary="Get the ranges of the metrics of a project",
    ),
    Route(
        method="GET",
        path="/api/v1/projects/{projectId}/metadata/{key}",
        handler=values,
        response=MetadataValuesResponse,
        summary="List the texts under a key of the metadata of runs",
    ),
)
