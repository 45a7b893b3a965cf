"""Metrics of trials side by side: which points, which metrics, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from libs.db.engine import Database
from tests.integration.api.checkpoints.test_checkpoints import checkpoint
from tests.integration.api.tasks.service import Run, new_run, set_trial
from tests.integration.api.trials.test_metrics import accepted

PATH = "/api/v1/trials/time-series"


async def series(client: httpx.AsyncClient, **query: Any) -> dict[str, list[dict[str, Any]]]:
    """Group -> points, of one trial."""
    answer = await client.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    (trial,) = answer.json()["trials"]
    return {metrics["group"]: metrics["data"] for metrics in trial["metrics"]}


async def many_reports(db: Database, run: Run, count: int, *, odd: int) -> None:
    """Training at 1 to ``count``: loss falls, but stands out at ``odd``."""
    statement = text(
        "INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)"
        " SELECT CAST(:trial AS bigint), 1, 'training', 'TRAINING', n, now(),"
        " jsonb_build_object('avg_metrics', jsonb_build_object('loss',"
        " CASE WHEN n = CAST(:odd AS int) THEN 1000 ELSE 1.0 / n END, 'other', 1))"
        " FROM generate_series(1, CAST(:count AS int)) n"
    )
    async with db.transaction() as connection:
        await connection.execute(statement, {"trial": run.trial, "odd": odd, "count": count})


async def test_points_of_both_groups(owner: httpx.AsyncClient, client: httpx.AsyncClient, run: Run) -> None:
    await accepted(client, run, step=10, loss=1.5, epoch=1, lr=3)
    await accepted(client, run, step=20, loss="NaN", epochs=2.5)
    await accepted(client, run, step=30, acc=1)
    await accepted(client, run, "validation", 20, loss=2)
    found = await series(owner, trialIds=[run.trial], metricNames=["loss"])
    time = "2030-01-01T00:00:00Z"
    assert found == {
        "training": [
            {"batches": 10, "values": {"loss": 1.5}, "time": time, "epoch": 1.0},
            {"batches": 20, "values": {"loss": "NaN"}, "time": time, "epoch": 2.5},
        ],
        "validation": [{"batches": 20, "values": {"loss": 2}, "time": time}],
    }
    both = await series(owner, trialIds=[run.trial], metricIds=["training.loss", "training.lr", "training.acc"])
    assert [point["values"] for point in both["training"]] == [{"loss": 1.5, "lr": 3}, {"loss": "NaN"}, {"acc": 1}]
    named = await series(owner, trialIds=[run.trial], metricNames=["loss"], group="validation")
    assert list(named) == ["validation"]
    typed = await series(owner, trialIds=[run.trial], metricNames=["loss"], metricType="METRIC_TYPE_TRAINING")
    assert list(typed) == ["training"]
    assert await series(owner, trialIds=[run.trial]) == {}


async def test_many_points_become_few_and_extremes_stay(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    await many_reports(db, run, 5000, odd=3333)
    once = (await series(owner, trialIds=[run.trial], metricNames=["loss"], group="training"))["training"]
    assert 100 < len(once) <= 200
    assert (once[0]["batches"], once[-1]["batches"]) == (1, 5000)
    assert {"loss": 1000} in [point["values"] for point in once]
    assert once == (await series(owner, trialIds=[run.trial], metricNames=["loss"], group="training"))["training"]
    few = await series(owner, trialIds=[run.trial], metricIds=["training.loss"], maxDatapoints=7, startBatches=3000)
    assert few["training"][0]["batches"] == 3000
    assert len(few["training"]) <= 7
    assert 3333 in [point["batches"] for point in few["training"]]


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({"startBatches": 2, "endBatches": 3}, [2, 3]),
    ({"timeSeriesFilter.name": "batches", "timeSeriesFilter.integerRange.gt": 2}, [3, 4]),
    ({"timeSeriesFilter.name": "batches", "timeSeriesFilter.integerRange.incl": [1, 4]}, [1, 4]),
    ({"timeSeriesFilter.name": "batches", "timeSeriesFilter.integerRange.notIn": [1, 4]}, [2, 3]),
    ({"timeSeriesFilter.name": "epoch", "timeSeriesFilter.doubleRange.lte": 1.0}, [1, 2]),
    ({"timeSeriesFilter.name": "time", "timeSeriesFilter.timeRange.gte": "2030-01-01T00:00:00Z"}, [1, 2, 3, 4]),
    ({"timeSeriesFilter.name": "time", "timeSeriesFilter.timeRange.lt": "2030-01-01T00:00:00Z"}, []),
]


async def test_filters(owner: httpx.AsyncClient, client: httpx.AsyncClient, run: Run) -> None:
    for step in (1, 2, 3, 4):
        await accepted(client, run, step=step, loss=step, epoch=step / 2)
    for query, batches in FILTERS:
        found = await series(owner, trialIds=[run.trial], metricNames=["loss"], **query)
        assert [point["batches"] for point in found.get("training", [])] == batches, query


async def test_what_was_rolled_back_is_not_drawn(
    db: Database, owner: httpx.AsyncClient, client: httpx.AsyncClient, run: Run
) -> None:
    await accepted(client, run, step=1, loss=1)
    await accepted(client, run, step=2, loss=2)
    await set_trial(db, run.trial, run_id=2)
    await accepted(client, run, step=1, run_id=2, loss=3)
    found = await series(owner, trialIds=[run.trial], metricNames=["loss"])
    assert [point["values"] for point in found["training"]] == [{"loss": 3}]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"metricNames": "a", "metricIds": "training.a"}, "specify either metricNames or metricIds, not both"),
        ({"metricIds": "a"}, "metricIds: expected <group>.<name>, got 'a'"),
        ({"metricNames": "a", "maxDatapoints": -1}, "maxDatapoints: must not be negative"),
        ({"startBatches": -1}, "startBatches and endBatches must not be negative"),
        (
            {"metricNames": "a", "timeSeriesFilter.name": "x"},
            "timeSeriesFilter.name: expected one of batches, epoch, time, got 'x'",
        ),
        (
            {"metricNames": "a", "timeSeriesFilter.name": "time", "timeSeriesFilter.doubleRange.lt": "1"},
            "timeSeriesFilter: time has a timeRange, not numbers",
        ),
    ],
)
async def test_what_is_refused(owner: httpx.AsyncClient, run: Run, query: dict[str, Any], message: str) -> None:
    answer = await owner.get(PATH, params={"trialIds": run.trial, **query})
    assert (answer.status_code, answer.json()["error"]["error"]) == (400, message)


async def test_trials_come_in_the_order_asked_for(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    other = await new_run(db)
    answer = await owner.get(PATH, params={"trialIds": [other.trial, run.trial]})
    assert [each["trial"]["id"] for each in answer.json()["trials"]] == [other.trial, run.trial]
    assert (await owner.get(PATH, params={"trialIds": [run.trial, 99999]})).status_code == 404
    assert (await owner.get(PATH)).status_code == 400


async def test_series_come_without_summaries(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    """One series of a trial costs the same however many names the trial has ever reported."""
    wide = {"avg_metrics": {f"m{each}": {"type": "number", "count": 1, "last": 1} for each in range(1000)}}
    await set_trial(db, run.trial, summary_metrics=wide)
    whole = (await owner.get(f"/api/v1/trials/{run.trial}")).json()["trial"]
    (found,) = (await owner.get(PATH, params={"trialIds": run.trial, "metricNames": "m1"})).json()["trials"]
    assert len(whole["summaryMetrics"]["avg_metrics"]) == 1000
    left_out = {"summaryMetrics", "bestValidation", "latestValidation", "bestCheckpoint"}
    assert set(whole) - set(found["trial"]) == left_out
    assert found["trial"] == {key: value for key, value in whole.items() if key not in left_out}


async def test_metrics_by_checkpoint(owner: httpx.AsyncClient, client: httpx.AsyncClient, run: Run) -> None:
    reported = checkpoint(run)
    assert (await client.post("/api/v1/checkpoints", json=reported)).status_code == 200
    uuid = reported["uuid"]
    source = {"trialId": run.trial, "checkpointUuid": uuid, "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE"}
    assert (await client.post("/api/v1/trial-source-info", json={"trialSourceInfo": source})).status_code == 200
    await accepted(client, run, "inference", 1, x=1)
    await accepted(client, run, "validation", 1, x=2)
    path = f"/api/v1/checkpoints/{uuid}/metrics"
    everything, one, other_type = await asyncio.gather(
        owner.get(path),
        owner.get(path, params={"metricGroup": "inference"}),
        owner.get(path, params={"trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_FINE_TUNING"}),
    )
    assert sorted(report["group"] for report in everything.json()["metrics"]) == ["inference", "validation"]
    assert [report["metrics"]["avg_metrics"] for report in one.json()["metrics"]] == [{"x": 1}]
    assert other_type.json() == {"metrics": []}
    assert (await owner.get("/api/v1/checkpoints/none/metrics")).status_code == 404


async def test_metrics_by_model_version(owner: httpx.AsyncClient, client: httpx.AsyncClient, run: Run) -> None:
    reported = checkpoint(run)
    uuid = reported["uuid"]
    assert (await client.post("/api/v1/checkpoints", json=reported)).status_code == 200
    name = f"model-{uuid}"
    model = (await owner.post("/api/v1/models", json={"name": name})).json()["model"]["id"]
    versions = f"/api/v1/models/{name}/versions"
    for _ in range(2):
        assert (await owner.post(versions, json={"checkpointUuid": uuid})).status_code == 200
    await accepted(client, run, "inference", 1, x=1)
    await accepted(client, run, "validation", 1, x=2)

    async def says(**source: Any) -> tuple[int, str]:
        about = {
            "trialId": run.trial,
            "checkpointUuid": uuid,
            "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE",
        }
        reply = await client.post("/api/v1/trial-source-info", json={"trialSourceInfo": {**about, **source}})
        return reply.status_code, reply.json().get("error", {}).get("error", "")

    async def groups(number: int, **query: str) -> list[str]:
        reply = await owner.get(f"{versions}/{number}/metrics", params=query)
        assert reply.status_code == 200, reply.text
        return sorted(report["group"] for report in reply.json()["metrics"])

    assert await groups(1) == []
    assert await says(modelId=model, modelVersion=7) == (404, f"model version '{model}/7' not found")
    assert await says(modelId=model) == (400, "modelId and modelVersion must both be given, or neither")
    assert await says(modelId=model, modelVersion=2) == (200, "")
    assert await groups(1) == []
    assert await groups(2) == ["inference", "validation"]
    assert await groups(2, metricGroup="inference") == ["inference"]
    assert await groups(2, trialSourceInfoType="TRIAL_SOURCE_INFO_TYPE_FINE_TUNING") == []
    assert (await owner.get(f"{versions}/3/metrics")).status_code == 404
    other = checkpoint(run)
    assert (await client.post("/api/v1/checkpoints", json=other)).status_code == 200
    refusal = f"version 1 of model {model} is checkpoint '{uuid}', not this one"
    assert await says(checkpointUuid=other["uuid"], modelId=model, modelVersion=1) == (400, refusal)
    assert (await owner.delete(f"{versions}/2")).status_code == 200
    assert (await owner.post(versions, json={"checkpointUuid": other["uuid"]})).status_code == 200
    assert await groups(2) == [], "another version took the number, not the trials"
    assert len((await owner.get(f"/api/v1/checkpoints/{uuid}/metrics")).json()["metrics"]) == 2
