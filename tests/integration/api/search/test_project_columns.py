"""Columns, ranges and values that tables of a project are made of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.api.search.conftest import Found

pytestmark = pytest.mark.asyncio(loop_scope="module")


def short(columns: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(one["column"], one["location"][14:], one["type"][12:]) for one in columns]


async def columns(found: Found, table: str) -> list[tuple[str, str, str]]:
    query = {"tableType": f"TABLE_TYPE_{table}"}
    answer = await found.api.ok("GET", f"/api/v1/projects/{found.project}/columns", params=query)
    return short(answer["columns"])


async def test_columns_of_experiments(found: Found) -> None:
    listed = await columns(found, "EXPERIMENT")
    assert [name for name, _, _ in listed[:20]] == [
        "id",
        "name",
        "description",
        "tags",
        "forkedFrom",
        "startTime",
        "duration",
        "numTrials",
        "state",
        "searcherType",
        "resourcePool",
        "progress",
        "checkpointSize",
        "checkpointCount",
        "user",
        "searcherMetric",
        "searcherMetricsVal",
        "externalExperimentId",
        "externalTrialId",
        "archived",
    ]
    assert listed[0] == ("id", "EXPERIMENT", "NUMBER")
    assert listed[20:] == [
        *((f"group_b.value.a.{kind}", "CUSTOM_METRIC", "NUMBER") for kind in ("last", "max", "mean", "min")),
        *((f"training.loss.{kind}", "TRAINING", "NUMBER") for kind in ("last", "max", "mean", "min")),
        *((f"validation.accuracy.{kind}", "VALIDATIONS", "NUMBER") for kind in ("last", "max", "mean", "min")),
        ("validation.word.last", "VALIDATIONS", "TEXT"),
        ("hp.lr", "HYPERPARAMETERS", "NUMBER"),
        ("hp.net.depth", "HYPERPARAMETERS", "NUMBER"),
        ("hp.net.kind", "HYPERPARAMETERS", "TEXT"),
        ("hp.opt", "HYPERPARAMETERS", "TEXT"),
    ]


async def test_columns_of_runs(found: Found) -> None:
    listed = await columns(found, "RUN")
    assert [name for name, _, _ in listed[:25]] == [
        "id",
        "experimentDescription",
        "tags",
        "forkedFrom",
        "startTime",
        "endTime",
        "duration",
        "state",
        "searcherType",
        "resourcePool",
        "checkpointSize",
        "checkpointCount",
        "user",
        "searcherMetric",
        "searcherMetricsVal",
        "externalExperimentId",
        "projectId",
        "externalRunId",
        "experimentProgress",
        "experimentId",
        "experimentName",
        "isExpMultitrial",
        "parentArchived",
        "localId",
        "archived",
    ]
    assert listed[23] == ("localId", "RUN", "TEXT")
    assert [one for one in listed[25:] if one[1] in ("VALIDATIONS", "RUN_HYPERPARAMETERS", "RUN_METADATA")] == [
        *((f"validation.accuracy.{kind}", "VALIDATIONS", "NUMBER") for kind in ("last", "max", "mean", "min")),
        ("validation.word.last", "VALIDATIONS", "UNSPECIFIED"),
        ("hp.lr", "RUN_HYPERPARAMETERS", "UNSPECIFIED"),
        ("hp.net.depth", "RUN_HYPERPARAMETERS", "NUMBER"),
        ("hp.net.flag", "RUN_HYPERPARAMETERS", "UNSPECIFIED"),
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
    assert not [one for one in ranges if "word" in one["metricsName"]]
    for key, values in (("team", ["Blue", "red"]), ("tags", ["p", "q"]), ("in.ner", ["deep"]), ("none", [])):
        assert (await found.api.ok("GET", f"{base}/metadata/{key}"))["values"] == values


async def test_a_project_that_is_empty_and_one_that_is_not_there(found: Found) -> None:
    empty = f"/api/v1/projects/{found.empty_project}"
    assert len((await found.api.ok("GET", f"{empty}/columns"))["columns"]) == 20
    assert (await found.api.ok("GET", f"{empty}/experiments/metric-ranges"))["ranges"] == []
    for path in ("columns", "experiments/metric-ranges", "metadata/x"):
        assert "project '99999' not found" in await found.api.refused(404, "GET", f"/api/v1/projects/99999/{path}")
