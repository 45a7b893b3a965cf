"""Lists of trials with many names whose summaries are rows: bounded, and nothing that they do not show is read."""

from __future__ import annotations

import json
import secrets
from typing import Any

import asyncpg
import httpx
import pytest

from libs.db.engine import Database
from services.api.metrics.rows.settling import settle
from services.api.metrics.rows.statements import WRITES_ROWS
from services.api.metrics.writer import ToRows
from tests.harness.app import never
from tests.integration.api.metrics.readings import get, lines
from tests.integration.api.metrics.reference import ReferenceTrial
from tests.integration.api.metrics.row_form import to_row_form
from tests.integration.api.metrics.test_histories import driver, new_runs
from tests.integration.api.metrics.test_row_form import take
from tests.integration.api.tasks.conftest import api
from tests.integration.api.tasks.service import Replica, Run

DAY = "2026-01-02T03:04:05"

__all__ = ["api", "driver"]


@pytest.fixture
def to_rows() -> ToRows:
    """Trials begin with their summary in the column, and are turned."""
    return never


async def listed(client: httpx.AsyncClient, project: int, trial: int) -> tuple[dict[str, Any], int]:
    """The summary of a run in lists, of runs and of experiments, and how many metrics these leave out."""
    found = []
    for path in ("runs", "experiments-search"):
        answer = await client.post(f"/api/v1/{path}", json={"projectId": project})
        assert answer.status_code == 200, answer.text
        rows = answer.json()
        found.append(rows["runs"] if path == "runs" else [row["bestTrial"] for row in rows["experiments"]])
    (run, best) = (next(each for each in trials if each and each["id"] == trial) for trials in found)
    shown = run["summaryMetrics"], run.get("summaryMetricsLeftOut", 0)
    assert (best["summaryMetrics"], best.get("summaryMetricsLeftOut", 0)) == shown
    return shown


async def make_best(driver: asyncpg.Connection, run: Run) -> None:
    await driver.execute("UPDATE experiments SET best_trial_id = $2 WHERE id = $1", run.experiment, run.trial)


@pytest.mark.parametrize("folded", [None, 1])
@pytest.mark.parametrize("count", [10, 94, 95, 3000])
async def test_a_list_shows_the_shortest_names_of_what_is_folded_and_what_is_not(
    db: Database, driver: asyncpg.Connection, api: Replica, count: int, folded: int | None
) -> None:
    """As of the same summary in the column of the trial, whichever of the names are only in the tail."""
    project, runs = await new_runs(db, f"wide-{count}-{folded}")
    run, reference = runs[0], ReferenceTrial()
    wide: dict[str, Any] = {f"layers.{each}": each for each in range(count)}
    await make_best(driver, run)
    async with api.client(headers=run.user_headers) as client:
        await take(client, run, reference, 1, {**wide, "old": 1, "layers.0": "text", "nothing": None})
        await take(client, run, reference, 2, {**wide, "z": 1, "\u00e9": 2, "old": None})
        await take(client, run, reference, 3, {})
        await take(client, run, reference, 4, {**wide, "z": "NaN", "a" * 600: 4})
        await take(client, run, reference, 1, {"loss": 1}, group="validation")
        await take(client, run, reference, 1, {}, group="empty")
        in_column = await listed(client, project, run.trial)
        await to_row_form(driver, run.trial, reference, {"training": folded, "validation": None})
        assert await listed(client, project, run.trial) == in_column
        await settle(driver, run.trial)
        assert await listed(client, project, run.trial) == in_column
    summary, left_out = in_column
    assert left_out == max(0, count + 6 - 100)
    assert sum(map(len, summary.values())) == min(count + 6, 100)
    assert set(summary) == {"avg_metrics", "validation_metrics", "empty"}


async def test_a_list_reads_no_summary_that_it_does_not_show(
    db: Database, driver: asyncpg.Connection, api: Replica
) -> None:
    project, runs = await new_runs(db, "unread")
    run, reference = runs[0], ReferenceTrial()
    await make_best(driver, run)
    async with api.client(headers=run.user_headers) as client:
        await take(client, run, reference, 1, {f"layers.{each}": each for each in range(101)})
        await take(client, run, reference, 2, {"layers.1": 1})
        in_column = await listed(client, project, run.trial)
        await to_row_form(driver, run.trial, reference, {"training": 1})
        # Whoever decodes this fails.
        unread = await driver.execute(
            """UPDATE metric_summaries s SET summary = '{"type": 1}' FROM metric_groups g
                WHERE g.trial_id = $1 AND s.summary_id = g.summary_id AND s.name = 'layers.100'""",
            run.trial,
        )
        assert unread == "UPDATE 1"
        assert await listed(client, project, run.trial) == in_column


async def test_columns_and_names_are_found_without_reading_summaries(
    db: Database, driver: asyncpg.Connection, api: Replica
) -> None:
    """And ranges read those of best trials alone."""
    project, runs = await new_runs(db, "names")
    run, best, reference = runs[0], runs[1], ReferenceTrial()
    experiment = run.experiment
    later = {"text": "text", "day": DAY, "not a day": "\u0662" + DAY[1:], "word": "NaN", "list": [1], "none": None}
    async with api.client(headers=run.user_headers) as client:
        await take(client, run, reference, 1, {"a": 1, "b": 1, "c": DAY, "d": 1, "e": None, "only folded": True})
        await take(client, run, reference, 2, {"a": "Infinity", "b": DAY, "c": DAY + "Z", "d": None, "e": 1, **later})
        await take(client, run, reference, 1, {"loss": 1, "day": DAY}, group="validation")
        await take(client, best, ReferenceTrial(), 1, {"a": 7, "text": 7})
        over = "UPDATE experiments SET state = 'COMPLETED', best_trial_id = $2 WHERE id = $1"
        await driver.execute(over, experiment, best.trial)
        in_column = await shown_of_project(client, project, experiment)
        await to_row_form(driver, run.trial, reference, {"training": 1, "validation": None})
        await driver.execute(
            """UPDATE metric_summaries s SET summary = s.summary || '{"count": "not a number"}' FROM metric_groups g
                WHERE g.trial_id = $1 AND s.summary_id = g.summary_id""",
            run.trial,
        )
        assert await shown_of_project(client, project, experiment) == in_column


async def test_names_are_read_without_a_large_document_that_has_them_too(
    db: Database, driver: asyncpg.Connection, api: Replica
) -> None:
    """A document comes with all its values, and rows with their names alone."""
    _, runs = await new_runs(db, "names in rows")
    run, reference = runs[0], ReferenceTrial()
    async with api.client(headers=run.user_headers) as client:
        await take(client, run, reference, 1, {f"layers.{each}": each for each in range(10)})
        await take(client, run, reference, 2, {"only reported": 1})
        await take(client, run, reference, 1, {"loss": 1}, group="validation")
        await driver.execute("UPDATE experiments SET state = 'COMPLETED' WHERE id = $1", run.experiment)
        in_column = await names_of_experiment(client, run)
        await to_row_form(driver, run.trial, reference, {"training": 1})
        await settle(driver, run.trial)
        assert await names_of_experiment(client, run) == in_column
        large: dict[str, Any] = {"avg_metrics": {f"decoy.{secrets.token_hex(16)}": {} for _ in range(1000)}}
        async with driver.transaction():
            await driver.execute(WRITES_ROWS)
            await driver.execute("UPDATE trials SET summary_metrics = $2 WHERE id = $1", run.trial, json.dumps(large))
        assert await names_of_experiment(client, run) == in_column


async def names_of_experiment(client: httpx.AsyncClient, run: Run) -> list[Any]:
    path = "/api/v1/experiments/metrics-stream/metric-names"
    return list(await lines(client, path, ids=run.experiment, periodSeconds=1))


async def shown_of_project(client: httpx.AsyncClient, project: int, experiment: int) -> list[Any]:
    path = f"/api/v1/projects/{project}"
    tables = ("TABLE_TYPE_RUN", "TABLE_TYPE_EXPERIMENT")
    columns = [await get(client, f"{path}/columns", tableType=table) for table in tables]
    names = await lines(client, "/api/v1/experiments/metrics-stream/metric-names", ids=experiment, periodSeconds=1)
    return [columns, names, await get(client, f"{path}/experiments/metric-ranges")]
