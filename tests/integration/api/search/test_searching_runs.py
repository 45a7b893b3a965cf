"""The search language over runs: their columns, hyperparameters and metadata, sorts, and what each row shows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import update

from libs.db.tables.experiments import experiments
from tests.integration.api.experiments.rows import START
from tests.integration.api.search.conftest import Found
from tests.scenarios.search.nodes import field, group
from tests.scenarios.search.runs import ALL, FILTERS, META, SORTS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(("wanted", "expected"), FILTERS, ids=lambda one: json.dumps(one)[:90])
async def test_a_filter_finds(found: Found, wanted: dict[str, Any], expected: list[str]) -> None:
    assert await found.search("runs", wanted, archived=True) == expected


async def test_what_is_archived_is_out_of_sight(found: Found) -> None:
    assert await found.search("runs", group("and")) == ["a1", "b1"]
    assert await found.search("runs") == ALL


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
        "hyperparameters": {"lr": 1, "opt": "apple", "net": {"depth": 4, "flag": True, "in": {"ner": 5}}},
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


async def test_the_state_is_the_stored_one(found: Found) -> None:
    """Clients compare it with those that they filter by."""
    experiment = await found.api.create_empty(activate=True)
    run = await found.api.rows.trial(experiment)
    await found.api.rows.allocation(run, "RUNNING", start_time=START)
    wanted = group("and", field("state", "=", "ACTIVE", "RUN"), field("id", "=", run, "RUN"))
    text = json.dumps({"filterGroup": wanted, "showArchived": False})
    (shown,) = (await found.api.ok("POST", "/api/v1/runs", json={"filter": text}))["runs"]
    assert shown["state"] == "STATE_ACTIVE"
    assert (await found.api.ok("GET", f"/api/v1/trials/{run}"))["trial"]["state"] == "STATE_RUNNING"


async def test_what_runs_do_not_have(found: Found) -> None:
    for wanted in (
        field("numTrials", "=", 1, "RUN"),
        field("team", "=", "x", META),
        field("isExpMultitrial", "<", True, "RUN"),
        field("isExpMultitrial", "contains", "t", "RUN"),
    ):
        said = await found.api.refused(400, "POST", "/api/v1/runs", json=found.request(wanted))
        assert wanted["columnName"] in said
    said = await found.api.refused(400, "POST", "/api/v1/runs", json={"sort": "numTrials=asc"})
    assert said == "invalid sort col: numTrials"
    assert "not found" in await found.api.refused(404, "POST", "/api/v1/runs", json={"projectId": 99999})


@pytest.mark.parametrize("count", [98, 99, 5000])
async def test_a_row_shows_the_shortest_names_and_says_how_many_more_there_are(found: Found, count: int) -> None:
    """Whether the database leaves them out, as of a large summary, or the api."""
    metric = {"type": "number", "count": 1, "last": 0.5}
    summary = {
        "avg_metrics": {f"layers.{each}": metric for each in range(count)} | {"loss": metric},
        "validation_metrics": {"\u00e9cart": metric},
        "empty": {},
    }
    experiment = await found.api.create_empty(activate=True)
    run = await found.api.rows.trial(experiment, summary_metrics=summary)
    text = json.dumps({"filterGroup": group("and", field("id", "=", run, "RUN")), "showArchived": False})
    (shown,) = (await found.api.ok("POST", "/api/v1/runs", json={"filter": text}))["runs"]
    async with found.api.app.db.transaction() as connection:
        best = update(experiments).where(experiments.c.id == experiment).values(best_trial_id=run)
        await connection.execute(best)
    text = json.dumps({"filterGroup": group("and", field("id", "=", experiment)), "showArchived": False})
    request = {"filter": text}
    (with_best,) = (await found.api.ok("POST", "/api/v1/experiments-search", json=request))["experiments"]
    for row in (shown, with_best["bestTrial"]):
        assert row.get("summaryMetricsLeftOut", 0) == max(0, count - 98)
        expected = ["loss", *(f"layers.{each}" for each in range(min(count, 98)))]
        assert row["summaryMetrics"]["avg_metrics"] == dict.fromkeys(expected, metric)
        assert row["summaryMetrics"]["validation_metrics"] == summary["validation_metrics"]
        assert row["summaryMetrics"]["empty"] == {}
    whole = (await found.api.ok("GET", f"/api/v1/trials/{run}"))["trial"]
    assert whole["summaryMetrics"] == summary
