"""Lists of trials with many names whose summaries are rows: bounded, and nothing that they do not show is read."""

from __future__ import annotations

from typing import Any

import asyncpg
import httpx
import pytest

from libs.db.engine import Database
from services.api.metrics.rows.settling import settle
from tests.integration.api.metrics.reference import ReferenceTrial
from tests.integration.api.metrics.row_form import to_row_form
from tests.integration.api.metrics.test_histories import driver, new_runs
from tests.integration.api.metrics.test_row_form import take
from tests.integration.api.tasks.conftest import api
from tests.integration.api.tasks.service import Replica

__all__ = ["api", "driver"]


async def listed(client: httpx.AsyncClient, project: int, trial: int) -> tuple[dict[str, Any], int]:
    """The summary of a run in a list, and how many metrics are left out of it."""
    answer = await client.post("/api/v1/runs", json={"projectId": project})
    assert answer.status_code == 200, answer.text
    (run,) = (run for run in answer.json()["runs"] if run["id"] == trial)
    return run["summaryMetrics"], run.get("summaryMetricsLeftOut", 0)


@pytest.mark.parametrize("folded", [None, 1])
@pytest.mark.parametrize("count", [10, 94, 95, 3000])
async def test_a_list_shows_the_shortest_names_of_what_is_folded_and_what_is_not(
    db: Database, driver: asyncpg.Connection, api: Replica, count: int, folded: int | None
) -> None:
    """As of the same summary in the column of the trial, whichever of the names are only in the tail."""
    project, runs = await new_runs(db, f"wide-{count}-{folded}")
    run, reference = runs[0], ReferenceTrial()
    wide: dict[str, Any] = {f"layers.{each}": each for each in range(count)}
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
