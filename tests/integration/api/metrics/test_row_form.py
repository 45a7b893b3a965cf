"""Readers of trials whose summaries are rows say what the reference says, wherever folding has got to."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import httpx
import pytest

from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from services.api.metrics.rows.settling import settle
from services.api.metrics.writer import ToRows
from tests.harness.app import never
from tests.harness.seeds import chance
from tests.integration.api.metrics.histories import START as TIME
from tests.integration.api.metrics.histories import AtOnce, history
from tests.integration.api.metrics.playing import Player
from tests.integration.api.metrics.readings import check_lists, check_ranges, check_trial, get, lines
from tests.integration.api.metrics.reference import ReferenceTrial, Report
from tests.integration.api.metrics.row_form import to_row_form
from tests.integration.api.metrics.test_histories import driver, new_runs
from tests.integration.api.tasks.conftest import api
from tests.integration.api.tasks.service import CONFIG, Replica, Run, new_experiment, new_run, row_of

__all__ = ["api", "driver"]


@pytest.fixture
def to_rows() -> ToRows:
    """Trials begin with their summary in the column, and are turned."""
    return never


async def play(client: httpx.AsyncClient, driver: asyncpg.Connection, run: Run, seed: int) -> ReferenceTrial:
    """A history without interruptions, in the form in which trials begin."""

    async def post(_: int, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
        return await client.post(path, content=json.dumps(body).encode(), headers=headers)

    happenings = [replace(one, cut=None) if isinstance(one, AtOnce) else one for one in history(seed)]
    return await Player(post, driver).play(run, happenings)


def somewhere(seed: int, reference: ReferenceTrial) -> dict[str, int | None]:
    """A step of each group up to which its reports are folded: none, one in the middle, or the newest."""
    drawing = random.Random(seed)
    steps = {group: [row.step for row in reference.surviving(group)] for group in {row.group for row in reference.rows}}
    return {group: drawing.choice([None, *known]) for group, known in sorted(steps.items())}


@pytest.mark.timeout(300)
async def test_readers_add_what_is_not_folded_yet(db: Database, driver: asyncpg.Connection, api: Replica) -> None:
    first = chance().randrange(2**32)
    project, runs = await new_runs(db, "row-form")
    experiment = runs[0].experiment
    played: dict[int, ReferenceTrial] = {}
    async with api.client(headers=runs[0].user_headers) as client:
        for seed, run in enumerate(runs, start=first):
            print(f"history({seed}) of trial {run.trial}")
            played[run.trial] = await play(client, driver, run, seed)
            if seed % 5:  # the others stay as they are
                await to_row_form(driver, run.trial, played[run.trial], somewhere(seed, played[run.trial]))
            await check_trial(client, run, played[run.trial])
        await driver.execute("UPDATE experiments SET state = 'COMPLETED' WHERE id = $1", experiment)
        await check_lists(client, project=project, experiment=experiment, trials=played)
        for run in runs:
            await driver.execute("UPDATE experiments SET best_trial_id = $2 WHERE id = $1", experiment, run.trial)
            await check_ranges(client, project=project, best=played[run.trial])


@dataclass(frozen=True)
class Reported:
    """One report of the group ``training`` at each step; those up to ``folded`` are in the summary rows."""

    name: str
    reports: dict[int, dict[str, Any]]
    folded: int | None
    archived: frozenset[int] = frozenset()


CASES = [
    Reported("nothing is folded", {1: {"a": 1}, 2: {"a": 3, "b": "x"}}, None),
    Reported("nothing is left to fold", {1: {"a": 1}, 2: {"a": 3}}, 2),
    Reported("a tail without a metric takes its last value away", {1: {"a": 1, "b": 2}, 2: {"b": 3}}, 1),
    Reported("a folded report without a metric has taken it away before", {1: {"a": 1, "b": 2}, 2: {"b": 3}}, 2),
    Reported("null is no last value, folded", {1: {"a": None}}, 1),
    Reported("null is no last value, in the tail", {1: {"a": 1}, 2: {"a": None}}, 1),
    Reported("a text in the tail ends the numbers", {1: {"a": 1}, 2: {"a": "text"}}, 1),
    Reported("words are numbers", {1: {"a": "NaN", "b": "Infinity"}, 2: {"a": 1, "b": "-Infinity"}}, 1),
    Reported("an empty report is the newest all the same", {1: {"a": 1}, 2: {}}, 1),
    Reported("a long name", {1: {"n" * 3000: 1}, 2: {"n" * 3000: 2}}, 1),
    Reported("what was taken back is no tail", {1: {"a": 1}, 2: {"a": 5}}, 1, frozenset({2})),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_tail(db: Database, driver: asyncpg.Connection, api: Replica, case: Reported) -> None:
    run, reference = await new_run(db), ReferenceTrial()
    async with api.client(headers=run.user_headers) as client:
        for step, avg in case.reports.items():
            await take(client, run, reference, step, avg)
        for row in reference.rows:
            row.archived = row.step in case.archived
        await driver.execute(
            "UPDATE metrics SET archived = true WHERE trial_id = $1 AND total_batches = ANY($2)",
            run.trial,
            list(case.archived),
        )
        await to_row_form(driver, run.trial, reference, {"training": case.folded})
        await check_trial(client, run, reference)


async def test_a_total_above_all_reports_stays(db: Database, driver: asyncpg.Connection, api: Replica) -> None:
    """An imported trial may have one; what is shown does not drop while it reports."""
    run, reference = await new_run(db), ReferenceTrial()
    async with api.client(headers=run.user_headers) as client:
        await take(client, run, reference, 1, {"loss": 1})
        await take(client, run, reference, 2, {"loss": 2})
        await to_row_form(driver, run.trial, reference, {"training": 1})
        await driver.execute("UPDATE trials SET total_batches = 50 WHERE id = $1", run.trial)
        assert await totals(client, run) == [50, 50, 50]
        await settle(driver, run.trial)
        assert await totals(client, run) == [50, 50, 50]


async def totals(client: httpx.AsyncClient, run: Run) -> list[int]:
    """What is said of the trial alone, in the list of its experiment, and beside its charts."""
    alone = (await get(client, f"/api/v1/trials/{run.trial}"))["trial"]
    (listed,) = (await get(client, f"/api/v1/experiments/{run.experiment}/trials"))["trials"]
    (compared,) = (await get(client, "/api/v1/trials/time-series", trialIds=run.trial, metricNames=["loss"]))["trials"]
    return [shown["totalBatchesProcessed"] for shown in (alone, listed, compared["trial"])]


async def take(
    client: httpx.AsyncClient,
    run: Run,
    reference: ReferenceTrial,
    step: int,
    avg: dict[str, Any],
    group: str = "training",
) -> None:
    report = Report(run=1, group=group, step=step, time=TIME, avg=avg)
    body = {"trialRunId": 1, "stepsCompleted": step, "reportTime": TIME.isoformat(), "metrics": {"avgMetrics": avg}}
    answer = await client.post(
        f"/api/v1/trials/{run.trial}/metrics", json={"group": group, "metrics": body}, headers=run.headers
    )
    assert answer.status_code == 200, answer.text
    assert reference.report(report) is None


@pytest.mark.parametrize(("searcher", "expected"), [("random", [1, 0]), ("adaptive_asha", [0, 1])])
async def test_the_best_trials_are_those_of_now(
    db: Database, driver: asyncpg.Connection, api: Replica, searcher: str, expected: list[int]
) -> None:
    config = {**CONFIG, "searcher": {**CONFIG["searcher"], "name": searcher}}
    experiment = await new_experiment(db, config=config)
    runs = [await new_run(db, experiment=experiment) for _ in range(2)]
    # By what is folded the first is the best and the second has trained longest.
    reports = [{1: {"loss": 3}, 9: {"loss": 4}}, {2: {"loss": 5}, 3: {"loss": 1}}]
    async with api.client(headers=runs[0].user_headers) as client:
        for run, of_run in zip(runs, reports, strict=True):
            reference = ReferenceTrial()
            for step, avg in of_run.items():
                await take(client, run, reference, step, avg)
            await to_row_form(driver, run.trial, reference, {"training": min(of_run)})
        await driver.execute("UPDATE experiments SET state = 'COMPLETED' WHERE id = $1", experiment)
        path = f"/api/v1/experiments/{experiment}/metrics-stream/trials-sample"
        (message,) = await lines(client, path, metricName="loss", group="training")
    assert message["promotedTrials"] == [runs[place].trial for place in expected]


async def test_a_search_of_experiments_looks_at_their_best_trials_as_they_are_now(
    db: Database, driver: asyncpg.Connection, api: Replica
) -> None:
    """And who is chosen by a filter to be archived."""
    project, runs = await new_runs(db, "row-form-search")
    run, reference = runs[0], ReferenceTrial()
    async with api.client(headers=run.user_headers) as client:
        await take(client, run, reference, 1, {"loss": 1})
        await take(client, run, reference, 2, {"loss": 7})
        await to_row_form(driver, run.trial, reference, {"training": 1})
        await driver.execute("UPDATE experiments SET best_trial_id = $2 WHERE id = $1", run.experiment, run.trial)
        for least, found in ((7, 1), (8, 0)):
            condition = {
                "columnName": "training.loss.max",
                "location": "LOCATION_TYPE_TRAINING",
                "type": "COLUMN_TYPE_NUMBER",
                "kind": "field",
                "operator": ">=",
                "value": least,
            }
            group = {"kind": "group", "conjunction": "and", "children": [condition]}
            request = {"projectId": project, "filter": json.dumps({"filterGroup": group, "showArchived": False})}
            answer = await client.post("/api/v1/experiments-search", json={**request, "sort": "training.loss.max=desc"})
            assert answer.status_code == 200, answer.text
            shown = answer.json()["experiments"]
            assert [one["bestTrial"]["summaryMetrics"] for one in shown] == [reference.summary] * found
            answer = await client.post("/api/v1/runs/archive", json=request)
            assert len(answer.json()["results"]) == found
        columns = await client.get(f"/api/v1/projects/{project}/columns", params={"tableType": "TABLE_TYPE_EXPERIMENT"})
        shown_columns = {column["column"] for column in columns.json()["columns"]}
        assert "training.loss.max" in shown_columns
        assert "training.decoy.max" not in shown_columns
    assert (await row_of(db, experiments, id=run.experiment)).best_trial_id == run.trial
