"""Ranges of metrics over best trials, of which some have their summary in rows behind which their column lags."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from libs.db.engine import Database
from services.api.metrics.rows.settling import settle
from services.api.metrics.writer import ToRows
from tests.harness.app import never
from tests.integration.api.metrics.readings import get
from tests.integration.api.metrics.reference import ReferenceTrial
from tests.integration.api.metrics.row_form import to_row_form
from tests.integration.api.metrics.test_histories import driver, new_runs
from tests.integration.api.metrics.test_row_form import take
from tests.integration.api.tasks.conftest import api
from tests.integration.api.tasks.service import Replica

__all__ = ["api", "driver"]


@pytest.fixture
def to_rows() -> ToRows:
    """Trials begin with their summary in the column, and are turned."""
    return never


async def test_ranges_are_those_of_all_best_trials_wherever_their_summaries_are(
    db: Database, driver: asyncpg.Connection, api: Replica
) -> None:
    projects = [await new_runs(db, f"ranges-{n}") for n in range(3)]
    project, _ = projects[0]
    runs = [of_project[0] for _, of_project in projects]
    losses: list[list[Any]] = [[5, 9], [10**30, -2.5], [7, "NaN"]]
    async with api.client(headers=runs[0].user_headers) as client:

        async def ranges() -> dict[str, tuple[Any, Any]]:
            shown = (await get(client, f"/api/v1/projects/{project}/experiments/metric-ranges"))["ranges"]
            return {each["metricsName"]: (each["min"], each["max"]) for each in shown}

        for place, (run, values) in enumerate(zip(runs, losses, strict=True)):
            reference = ReferenceTrial()
            for step, value in enumerate(values, start=1):
                await take(client, run, reference, step, {"loss": value, "flag": True})
            if place:
                await to_row_form(driver, run.trial, reference, {"training": 1})
            change = "UPDATE experiments SET project_id = $2, best_trial_id = $3 WHERE id = $1"
            await driver.execute(change, run.experiment, project, run.trial)
            await driver.execute("UPDATE trials SET project_id = $2 WHERE id = $1", run.trial, project)
        expected = {
            "training.loss.last": (-2.5, 9),
            "training.loss.max": (9, 1e30),
            "training.loss.mean": (7, 5e29),
            "training.loss.min": (-2.5, 5),
        }
        assert await ranges() == expected
        await settle(driver, runs[1].trial)
        assert await ranges() == expected
