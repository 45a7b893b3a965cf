"""The search language over runs: their columns, hyperparameters and metadata, sorts, and what each row shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.api.search.conftest import Found, field, group

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = ["a1", "a2", "b1", "c1"]
HP, META = "RUN_HYPERPARAMETERS", "RUN_METADATA"

FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    (field("experimentName", "contains", "alpha", "RUN"), ["a1", "a2"]),
    (field("experimentName", "contains", "alpha"), ["a1", "a2"]),
    (field("experimentName", "isEmpty", None, "RUN"), []),
    (field("experimentDescription", "isEmpty", None, "RUN"), ["b1", "c1"]),
    (field("tags", "contains", "PROD", "RUN"), ["a1", "a2"]),
    (field("searcherType", "=", "single", "RUN"), ["b1", "c1"]),
    (field("searcherMetric", "=", "accuracy", "RUN"), ["a1", "a2"]),
    (field("resourcePool", "=", "gpus", "RUN"), ["b1"]),
    (field("startTime", ">", "2030-01-01", "RUN"), ["b1"]),
    (field("endTime", "notEmpty", None, "RUN"), ["a1"]),
    (field("duration", "=", 30, "RUN"), ["a1"]),
    (field("state", "=", "ERROR", "RUN"), ["a2", "c1"]),
    (field("experimentProgress", ">=", 25, "RUN"), ["a1", "a2", "b1"]),
    (field("user", "=", 2, "RUN"), ["b1"]),
    (field("forkedFrom", "notEmpty", None, "RUN"), ["b1"]),
    (field("checkpointSize", "=", 7, "RUN"), ["a1"]),
    (field("checkpointCount", "=", 0, "RUN"), ALL),
    (field("searcherMetricsVal", ">", 0.5, "RUN"), ["a1"]),
    (field("externalExperimentId", "=", "outside", "RUN"), ["b1"]),
    (field("externalRunId", "=", "run-1", "RUN"), ["a1"]),
    (field("localId", "=", "SRCH-3", "RUN"), ["b1"]),
    (field("localId", "contains", "srch-", "RUN"), ALL),
    (field("isExpMultitrial", "=", True, "RUN"), ["a1", "a2"]),
    (field("isExpMultitrial", "!=", "true", "RUN"), ["b1", "c1"]),
    (field("parentArchived", "=", True, "RUN"), ["c1"]),
    # Metrics of the run itself.
    (field("validation.accuracy.last", "<", 0.5, "VALIDATIONS", "NUMBER"), ["a2"]),
    (field("training.loss.last", ">", 1, "TRAINING", "NUMBER"), ["a2"]),  # NaN is more than any number
    (field("training.loss.last", "notEmpty", None, "TRAINING", "NUMBER"), ["a1", "a2"]),
    # The search space of the experiment.
    (field("hp.opt", "contains", "adam", "HYPERPARAMETERS", "TEXT"), ["a1", "a2"]),
    # Hyperparameters of the run.
    (field("hp.lr", "<=", 1, HP, "NUMBER"), ["a1"]),
    (field("hp.lr", "!=", 1, HP, "NUMBER"), ["a2", "c1"]),
    (field("hp.lr", "isEmpty", None, HP, "NUMBER"), ["b1"]),
    (field("hp.lr", "notEmpty", None, HP, "NUMBER"), ["a1", "a2", "c1"]),
    (field("hp.opt", "contains", "apple", HP, "TEXT"), ["a1"]),
    (field("hp.opt", "contains", "Apple", HP, "TEXT"), []),
    (field("hp.opt", "notContains", "apple", HP, "TEXT"), ["a2", "c1"]),
    (field("hp.opt", "=", '["l", 1]', HP, "TEXT"), ["c1"]),
    (field("hp.net.depth", ">", 10**29, HP, "NUMBER"), ["a2"]),
    (field("hp.net.flag", "=", True, HP), ["a1"]),
    (field("hp.net", "notEmpty", None, HP), []),
    # Metadata of the run.
    (field("metadata.n", ">", 7.5, META, "NUMBER"), ["a2"]),
    (field("metadata.n", "!=", 7, META, "NUMBER"), ["a2"]),
    (field("metadata.team", "contains", "Bl", META, "TEXT"), ["a1"]),
    (field("metadata.team", "notContains", "Bl", META, "TEXT"), ["a2"]),
    (field("metadata.team", "isEmpty", None, META, "TEXT"), ["b1", "c1"]),
    (field("metadata.day", ">=", "2024-02-29", META, "DATE"), ["a1"]),  # there is no 30th of February
    (field("metadata.flag", "=", False, META), ["a2"]),
    (field("metadata.tags", "=", "q", META, "TEXT"), ["a1"]),
    (field("metadata.tags", "!=", "q", META, "TEXT"), ["a2"]),
    (field("metadata.tags", "=", 3, META, "NUMBER"), ["a1"]),
    (field("metadata.in.ner", "=", "deep", META, "TEXT"), ["a1"]),
    (field("metadata.in", "isEmpty", None, META, "TEXT"), ALL),
    (group("or", field("id", "<", 0, "RUN"), group("and", field("state", "!=", "ERROR", "RUN"))), ["a1", "b1"]),
]


@pytest.mark.parametrize(("wanted", "expected"), FILTERS, ids=lambda one: json.dumps(one)[:90])
async def test_a_filter_finds(found: Found, wanted: dict[str, Any], expected: list[str]) -> None:
    assert await found.search("runs", wanted, archived=True) == expected


async def test_what_is_archived_is_out_of_sight(found: Found) -> None:
    assert await found.search("runs", group("and")) == ["a1", "b1"]
    assert await found.search("runs") == ALL


SORTS = [
    ("", ALL),
    ("id=desc", ["c1", "b1", "a2", "a1"]),
    ("archived=desc", ["a2", "a1", "b1", "c1"]),
    ("experimentName=desc,localId=desc", ["c1", "b1", "a2", "a1"]),
    ("hp.lr=desc", ["a2", "a1", "c1", "b1"]),
    ("metadata.n=desc", ["a2", "a1", "b1", "c1"]),
    ("validation.accuracy.last=asc", ["a2", "a1", "b1", "c1"]),
    ("user=desc", ["b1", "a1", "a2", "c1"]),
]


@pytest.mark.parametrize(("sort", "expected"), SORTS)
async def test_sorting(found: Found, sort: str, expected: list[str]) -> None:
    assert await found.search("runs", sort=sort) == expected


async def test_what_a_row_shows(found: Found) -> None:
    request = found.request(field("localId", "=", "SRCH-1", "RUN"))
    (run,) = (await found.api.ok("POST", "/api/v1/runs", json=request))["runs"]
    assert run["id"] == found.runs["a1"]
    expected = {
        "localId": "SRCH-1",
        "state": "STATE_COMPLETED",
        "duration": 30,
        "hyperparameters": {"lr": 1, "opt": "apple", "net": {"depth": 4, "flag": True}},
        "labels": ["prod", "x"],
        "checkpointSize": "7",
        "searcherMetricValue": 0.9,
        "externalRunId": "run-1",
        "archived": False,
        "parentArchived": False,
        "projectName": "searched",
        "workspaceName": "searched",
    }
    assert {key: run[key] for key in expected} == expected
    assert run["metadata"]["in"] == {"ner": "deep"}
    assert run["experiment"]["isMultitrial"] is True
    assert run["experiment"]["progress"] == 1
    page = await found.api.ok("POST", "/api/v1/runs", json={**found.request(None), "offset": -1, "limit": 5})
    assert page["pagination"] == {"offset": -1, "limit": 5, "startIndex": 3, "endIndex": 4, "total": 4}


async def test_what_runs_do_not_have(found: Found) -> None:
    for wanted in (
        field("numTrials", "=", 1, "RUN"),
        field("archived", "=", True, "RUN"),
        field("team", "=", "x", META),
        field("isExpMultitrial", "<", True, "RUN"),
        field("isExpMultitrial", "contains", "t", "RUN"),
    ):
        said = await found.api.refused(400, "POST", "/api/v1/runs", json=found.request(wanted))
        assert wanted["columnName"] in said
    said = await found.api.refused(400, "POST", "/api/v1/runs", json={"sort": "numTrials=asc"})
    assert said == "invalid sort col: numTrials"
    assert "not found" in await found.api.refused(404, "POST", "/api/v1/runs", json={"projectId": 99999})
