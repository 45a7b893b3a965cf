"""Streams for charts: what the first message has, what later ones add, and that they end with the experiment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from services.api.queries.charts.sample import TrialsSample
from services.api.wire.charts.streams import TrialsSampleQuery
from tests.builders import insert_metrics
from tests.integration.api.tasks.service import CONFIG, Run, new_experiment, new_run
from tests.integration.api.trials.test_metrics import accepted

NAMES = "/api/v1/experiments/metrics-stream/metric-names"


def chart(run: Run, name: str) -> str:
    return f"/api/v1/experiments/{run.experiment}/metrics-stream/{name}"


async def end(db: Database, run: Run) -> None:
    async with db.transaction() as connection:
        ended = update(experiments).where(experiments.c.id == run.experiment)
        await connection.execute(ended.values(state="COMPLETED"))


async def messages(client: httpx.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    """All messages of a stream that ends."""
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line)["result"] for line in answer.text.splitlines()]


@asynccontextmanager
async def followed(client: httpx.AsyncClient, path: str, **query: Any) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    async with client.stream("GET", path, params={"periodSeconds": 1, **query}) as answer:
        assert answer.status_code == 200

        async def results() -> AsyncIterator[dict[str, Any]]:
            async for line in answer.aiter_lines():
                yield json.loads(line)["result"]

        yield results()


async def test_names_come_once_each_until_all_experiments_have_ended(
    db: Database, owner: httpx.AsyncClient, client: httpx.AsyncClient, run: Run
) -> None:
    other = await new_run(db)
    await end(db, other)
    async with followed(owner, NAMES, ids=[run.experiment, other.experiment]) as stream:
        first = await anext(stream)
        nothing: dict[str, Any] = {"trainingMetrics": [], "validationMetrics": [], "metricNames": []}
        assert first == {"searcherMetrics": ["loss"], **nothing}
        await accepted(client, run, step=1, a=1)
        await accepted(client, run, "validation", 1, loss=1)
        await accepted(client, run, "mine", 1, x="text")
        seen: list[tuple[str, str]] = []
        while len(seen) < 3:
            more = await anext(stream)
            seen += [(each["group"], each["name"]) for each in more["metricNames"]]
            assert more["searcherMetrics"] == []
        assert sorted(seen) == [("mine", "x"), ("training", "a"), ("validation", "loss")]
        await accepted(client, run, step=2, b=1)
        await end(db, run)
        last = [message async for message in stream]
        assert [message["trainingMetrics"] for message in last] == [["b"]]


async def test_batches(db: Database, owner: httpx.AsyncClient, client: httpx.AsyncClient, run: Run) -> None:
    await accepted(client, run, step=10, loss=1)
    await accepted(client, run, step=20, other=1)
    query = {"metricName": "loss", "metricType": "METRIC_TYPE_TRAINING"}
    async with followed(owner, chart(run, "batches"), **query) as stream:
        assert await anext(stream) == {"batches": [10]}
        await accepted(client, run, step=30, loss=1)
        assert await anext(stream) == {"batches": [30]}
        await end(db, run)
        assert [message async for message in stream] == []
    assert await messages(owner, chart(run, "batches"), metricName="none", group="training") == [{"batches": []}]


async def test_a_snapshot_has_the_nearest_report_of_each_trial(
    db: Database, owner: httpx.AsyncClient, client: httpx.AsyncClient, run: Run
) -> None:
    await accepted(client, run, "validation", 8, loss=8)
    await accepted(client, run, "validation", 11, loss="NaN")
    await new_run(db, experiment=run.experiment)
    query = {"metricName": "loss", "group": "validation", "batchesProcessed": 10}
    expected = {"trialId": run.trial, "hparams": {}, "metric": "NaN", "batchesProcessed": 11}
    async with followed(owner, chart(run, "trials-snapshot"), batchesMargin=2, **query) as stream:
        assert await anext(stream) == {"trials": [expected]}
        await accepted(client, run, "validation", 12, loss=1)  # farther away: no news
        await end(db, run)
        assert [message async for message in stream] == []
    exact = await messages(owner, chart(run, "trials-snapshot"), **query)
    assert exact == [{"trials": []}]


async def test_a_sample_follows_the_best_trials(
    db: Database, owner: httpx.AsyncClient, client: httpx.AsyncClient, api: Any, run: Run
) -> None:
    other = await new_run(db, experiment=run.experiment)
    await accepted(client, run, "validation", 1, loss=5)
    query = {"metricName": "loss", "group": "validation", "maxTrials": 1}
    async with (
        api.client(headers=other.headers) as other_client,
        followed(owner, chart(run, "trials-sample"), **query) as stream,
    ):
        first = await anext(stream)
        assert (first["promotedTrials"], first["demotedTrials"]) == ([run.trial], [])
        assert [point["values"] for point in first["trials"][0]["data"]] == [{"loss": 5}]
        await accepted(client, run, "validation", 2, loss=6)
        second = await anext(stream)
        assert (second["promotedTrials"], second["demotedTrials"]) == ([], [])
        assert [point["batches"] for point in second["trials"][0]["data"]] == [2]
        await accepted(other_client, other, "validation", 1, loss=1)
        third = await anext(stream)
        assert (third["promotedTrials"], third["demotedTrials"]) == ([other.trial], [run.trial])
        await end(db, run)
        assert [message async for message in stream] == []


RANKINGS: list[tuple[str, bool, list[int] | None]] = [
    ("a", True, [2, 1]),
    ("a", False, [1, 2]),
    ("b", True, [2, 1]),
    ("b", False, [1, 2]),
    ("c", True, [1, 2]),
    ("c", False, [2, 1]),
    ("d", True, None),
    ("e", True, [1, 2]),
    ("e", False, [1, 2]),
]


async def test_ranking(db: Database, owner: httpx.AsyncClient, api: Any) -> None:
    """The table of docs/reference/experiments.md 9.6."""
    first = await new_run(db)
    second = await new_run(db, experiment=first.experiment)
    async with api.client(headers=first.headers) as one, api.client(headers=second.headers) as two:
        await accepted(one, first, "validation", 1, a=1.5, b="NaN", c="-Infinity", d=1.5, e=1.0)
        await accepted(one, first, "validation", 2, d="text")
        await accepted(two, second, "validation", 1, a=-1.5, b=1.0, c="Infinity")
    async with db.transaction() as connection:
        await connection.execute(
            update(experiments).where(experiments.c.id == first.experiment).values(state="COMPLETED")
        )
    for name, smaller_is_better, expected in RANKINGS:
        config = {**CONFIG, "searcher": {**CONFIG["searcher"], "smaller_is_better": smaller_is_better}}
        async with db.transaction() as connection:
            chosen = update(experiments).where(experiments.c.id == first.experiment)
            await connection.execute(chosen.values(config=config))
        query = {"metricName": name, "group": "validation"}
        if expected is None:
            answer = await owner.get(chart(first, "trials-sample"), params=query)
            assert answer.status_code == 400
            assert "not numeric" in answer.json()["error"]["message"]
            continue
        (message,) = await messages(owner, chart(first, "trials-sample"), **query)
        ids = {1: first.trial, 2: second.trial}
        assert message["promotedTrials"] == [ids[n] for n in expected], (name, smaller_is_better)
        (limited,) = await messages(owner, chart(first, "trials-sample"), maxTrials=1, **query)
        assert limited["promotedTrials"] == [ids[expected[0]]]


@pytest.mark.parametrize(
    ("name", "query", "message"),
    [
        ("batches", {"group": "training"}, "metricName: must specify a metric name"),
        ("batches", {"metricName": "a"}, "group: must specify a metric group, or metricType"),
        (
            "batches",
            {"metricName": "a", "group": "b", "periodSeconds": -1},
            "periodSeconds: must not be negative",
        ),
        (
            "trials-snapshot",
            {"metricName": "a", "group": "b", "batchesMargin": 101},
            "batchesMargin: must be between 0 and 100",
        ),
        (
            "trials-sample",
            {"metricName": "a", "group": "b", "maxTrials": -1},
            "maxTrials, startBatches and endBatches must not be negative",
        ),
    ],
)
async def test_what_is_refused(
    owner: httpx.AsyncClient, run: Run, name: str, query: dict[str, Any], message: str
) -> None:
    answer = await owner.get(chart(run, name), params=query)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)


async def test_who_is_not_there(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    unknown = await owner.get(NAMES, params={"ids": [run.experiment, 99999]})
    assert (unknown.status_code, unknown.json()["error"]["message"]) == (404, "experiment '99999' not found")
    assert (await owner.get(NAMES)).status_code == 400
    single = {**CONFIG, "searcher": {**CONFIG["searcher"], "name": "single"}}
    alone = await new_run(db, experiment=await new_experiment(db, config=single))
    query = {"metricName": "loss", "group": "validation"}
    assert (await owner.get(chart(alone, "trials-sample"), params=query)).status_code == 400


async def test_streams_end_soon_after_the_experiment_whatever_their_period(
    db: Database, owner: httpx.AsyncClient, run: Run
) -> None:
    async with asyncio.timeout(15), followed(owner, NAMES, ids=[run.experiment], periodSeconds=3600) as stream:
        await anext(stream)
        async with db.transaction() as connection:
            await connection.execute(
                update(experiments).where(experiments.c.id == run.experiment).values(state="CANCELED")
            )
        assert [message async for message in stream] == []


async def test_a_sample_has_what_is_committed_late(db: Database, run: Run) -> None:
    """Its id is smaller than that of a report which was told already."""
    query = TrialsSampleQuery(metric_name="loss")
    sample = TrialsSample(db, run.experiment, group="training", query=query)
    async with db.transaction() as connection:
        searcher = {**CONFIG, "searcher": {"name": "adaptive_asha", "metric": "loss"}}
        await connection.execute(update(experiments).where(experiments.c.id == run.experiment).values(config=searcher))

    async def told() -> list[int]:
        found = [message async for batch in sample.look() for message in batch]
        return [point.batches for message in found for trial in message.trials for point in trial.data]

    async with db.transaction() as late:
        await insert_metrics(late, trial_id=run.trial, step=1, values={"loss": 1}, group="training")
        async with db.transaction() as connection:
            await insert_metrics(connection, trial_id=run.trial, step=2, values={"loss": 2}, group="training")
        assert await told() == [2]
    assert await told() == [1]
    assert await told() == []
