"""Columns, ranges and values that tables of a project are made of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.api.search.conftest import PATHS, Found
from tests.scenarios.search.columns import COLUMNS, COLUMNS_OF_EXPERIMENTS, COLUMNS_OF_RUNS, Column
from tests.scenarios.search.nodes import field

pytestmark = pytest.mark.asyncio(loop_scope="module")


def short(columns: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(one["column"], one["location"][14:], one["type"][12:]) for one in columns]


async def columns(found: Found, table: str) -> list[tuple[str, str, str]]:
    query = {"tableType": f"TABLE_TYPE_{table}"}
    answer = await found.api.ok("GET", f"/api/v1/projects/{found.project}/columns", params=query)
    return short(answer["columns"])


async def test_columns_of_experiments(found: Found) -> None:
    listed = await columns(found, "EXPERIMENT")
    assert listed[:20] == COLUMNS_OF_EXPERIMENTS
    assert listed[20:] == [
        *((f"group_b.value.a.{kind}", "CUSTOM_METRIC", "NUMBER") for kind in ("last", "max", "mean", "min")),
        ("training.curve.last", "TRAINING", "ARRAY"),
        *((f"training.loss.{kind}", "TRAINING", "NUMBER") for kind in ("last", "max", "mean", "min")),
        *((f"validation.accuracy.{kind}", "VALIDATIONS", "NUMBER") for kind in ("last", "max", "mean", "min")),
        ("validation.word.last", "VALIDATIONS", "TEXT"),
        ("hp.lr", "HYPERPARAMETERS", "NUMBER"),
        ("hp.net.depth", "HYPERPARAMETERS", "NUMBER"),
        ("hp.net.kind", "HYPERPARAMETERS", "TEXT"),
        ("hp.opt", "HYPERPARAMETERS", "UNSPECIFIED"),
    ]


@pytest.mark.parametrize("table", ["EXPERIMENT", "RUN"])
async def test_columns_are_called_as_people_know_them(found: Found, table: str) -> None:
    query = {"tableType": f"TABLE_TYPE_{table}"}
    listed = (await found.api.ok("GET", f"/api/v1/projects/{found.project}/columns", params=query))["columns"]
    shown = {each["column"]: each["displayName"] for each in listed}
    assert (shown["startTime"], shown["checkpointCount"]) == ("Start time", "Checkpoints")


async def test_columns_of_runs(found: Found) -> None:
    listed = await columns(found, "RUN")
    assert listed[:25] == COLUMNS_OF_RUNS
    assert [one for one in listed[25:] if one[1] in ("VALIDATIONS", "RUN_HYPERPARAMETERS", "RUN_METADATA")] == [
        *((f"validation.accuracy.{kind}", "VALIDATIONS", "NUMBER") for kind in ("last", "max", "mean", "min")),
        ("validation.word.last", "VALIDATIONS", "UNSPECIFIED"),
        ("hp.lr", "RUN_HYPERPARAMETERS", "UNSPECIFIED"),
        ("hp.net.depth", "RUN_HYPERPARAMETERS", "NUMBER"),
        ("hp.net.flag", "RUN_HYPERPARAMETERS", "UNSPECIFIED"),
        ("hp.net.in.ner", "RUN_HYPERPARAMETERS", "NUMBER"),
        ("hp.opt", "RUN_HYPERPARAMETERS", "TEXT"),
        ("metadata.day", "RUN_METADATA", "UNSPECIFIED"),
        ("metadata.flag", "RUN_METADATA", "UNSPECIFIED"),
        ("metadata.in.ner", "RUN_METADATA", "UNSPECIFIED"),
        ("metadata.n", "RUN_METADATA", "NUMBER"),
        ("metadata.tags", "RUN_METADATA", "ARRAY"),
        ("metadata.team", "RUN_METADATA", "TEXT"),
    ]


async def test_ranges_and_values(found: Found) -> None:
    base = f"/api/v1/projects/{found.project}"
    ranges = (await found.api.ok("GET", f"{base}/experiments/metric-ranges"))["ranges"]
    assert {"metricsName": "validation.accuracy.mean", "min": 0.8, "max": 0.8} in ranges
    listed = (await found.api.ok("GET", f"/api/v1/experiments?projectId={found.project}&showTrialData=true"))[
        "experiments"
    ]
    best = [each["bestTrialSearcherMetric"] for each in listed if each.get("bestTrialSearcherMetric") is not None]
    assert {"metricsName": "searcherMetricsVal", "min": min(best), "max": max(best)} in ranges
    assert not [one for one in ranges if "word" in one["metricsName"]]
    for key, values in (("team", ["Blue", "red"]), ("tags", ["p", "q"]), ("in.ner", ["deep"]), ("none", [])):
        assert (await found.api.ok("GET", f"{base}/metadata/{key}"))["values"] == values


async def test_a_project_that_is_empty_and_one_that_is_not_there(found: Found) -> None:
    empty = f"/api/v1/projects/{found.empty_project}"
    assert len((await found.api.ok("GET", f"{empty}/columns"))["columns"]) == 20
    assert (await found.api.ok("GET", f"{empty}/experiments/metric-ranges"))["ranges"] == []
    for path in ("columns", "experiments/metric-ranges", "metadata/x"):
        assert "project '99999' not found" in await found.api.refused(404, "GET", f"/api/v1/projects/99999/{path}")


@pytest.mark.parametrize("table", ["EXPERIMENT", "RUN"])
async def test_all_that_is_listed_can_be_filtered_and_sorted_by(found: Found, table: str) -> None:
    path = PATHS["experiments" if table == "EXPERIMENT" else "runs"]
    for column, location, kind in await columns(found, table):
        wanted = field(column, "notEmpty", None, location, kind)
        await found.api.ok("POST", path, json=found.request(wanted, sort=f"{column}=desc"))


@pytest.mark.parametrize("column", COLUMNS, ids=str)
async def test_what_a_column_may_be_used_for(found: Found, column: Column) -> None:
    for table, location, may_filter, may_sort in (
        ("experiments", "EXPERIMENT", column.filters_experiments, column.sorts_experiments),
        ("runs", "RUN", column.filters_runs, column.sorts_runs),
    ):
        wanted = found.request(field(column.name, "notEmpty", None, location))
        if may_filter:
            await found.api.ok("POST", PATHS[table], json=wanted)
        else:
            assert column.name in await found.api.refused(400, "POST", PATHS[table], json=wanted)
        for direction in ("asc", "desc"):
            sort = {"projectId": found.project, "sort": f"{column.name}={direction}"}
            if may_sort:
                await found.api.ok("POST", PATHS[table], json=sort)
            else:
                said = await found.api.refused(400, "POST", PATHS[table], json=sort)
                assert said == f"invalid sort col: {column.name}"
