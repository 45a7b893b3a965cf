"""System metrics by series: as the harness reports them, and through the old endpoint."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from libs.db.engine import Connection, Database
from services.api.queries.charts import profiler
from tests.builders import insert_metrics
from tests.integration.api.tasks.service import Run, set_trial
from tests.integration.api.trials.test_metrics import report

POST = "/api/v1/trials/profiler/metrics"


def of(run: Run, what: str) -> str:
    return f"/api/v1/trials/{run.trial}/profiler/{what}"


async def results(client: httpx.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line)["result"] for line in answer.text.splitlines()]


@pytest.fixture
async def profiled(client: httpx.AsyncClient, run: Run) -> Run:
    """Two nodes, two GPUs, a disk."""
    reports: list[tuple[str, dict[str, Any]]] = [
        ("gpu", {"n1": {"g1": {"gpu_util": 10}, "g2": {"gpu_util": 20}}}),
        ("cpu", {"n1": {"cpu_util_simple": 1.5}}),
        ("cpu", {"n2": {"cpu_util_simple": "NaN"}}),
        ("disk", {"n1": {"disk_iops": 5, "/": {"disk_util": 0.5}}}),
    ]
    for second, (group, document) in enumerate(reports):
        time = f"2030-01-01T00:00:0{second}Z"
        answer = await report(client, run, group, None, time=time, **document)
        assert answer.status_code == 200, answer.text
    return run


async def test_series_of_what_the_harness_reports(owner: httpx.AsyncClient, profiled: Run) -> None:
    ((labels),) = [message["labels"] for message in await results(owner, of(profiled, "available_series"))]
    assert [(each["name"], each["agentId"], each["gpuUuid"]) for each in labels] == [
        ("cpu_util_simple", "n1", ""),
        ("cpu_util_simple", "n2", ""),
        ("disk_iops", "n1", ""),
        ("disk_util", "n1", "/"),
        ("gpu_util", "n1", "g1"),
        ("gpu_util", "n1", "g2"),
    ]
    assert {each["metricType"] for each in labels} == {"PROFILER_METRIC_TYPE_SYSTEM"}
    one = await results(owner, of(profiled, "metrics"), **{"labels.name": "gpu_util", "labels.gpuUuid": "g2"})
    assert one == [
        {
            "batch": {
                "values": [20.0],
                "batches": [0],
                "timestamps": ["2030-01-01T00:00:00Z"],
                "labels": {
                    "trialId": profiled.trial,
                    "name": "gpu_util",
                    "agentId": "n1",
                    "gpuUuid": "g2",
                    "metricType": "PROFILER_METRIC_TYPE_SYSTEM",
                },
            }
        }
    ]
    both = await results(owner, of(profiled, "metrics"), **{"labels.name": "cpu_util_simple"})
    assert [message["batch"]["values"] for message in both] == [[1.5], ["NaN"]]
    assert len(await results(owner, of(profiled, "metrics"))) == 6


def batch(run: Run, name: str, values: list[Any], **labels: Any) -> dict[str, Any]:
    times = [datetime(2030, 1, 1, 0, 0, n, tzinfo=UTC).isoformat() for n in range(len(values))]
    of_series = {"trialId": run.trial, "name": name, **labels}
    return {"values": values, "batches": [0] * len(values), "timestamps": times, "labels": of_series}


async def test_the_old_endpoint(client: httpx.AsyncClient, owner: httpx.AsyncClient, run: Run) -> None:
    body = {
        "batches": [
            batch(run, "gpu_util", [1, "NaN", 3], agentId="n1", gpuUuid="g1"),
            batch(run, "to_device", [0.25], metricType="PROFILER_METRIC_TYPE_TIMING"),
        ]
    }
    for _ in range(2):  # the answer to the first was lost
        answer = await client.post(POST, json=body)
        assert (answer.status_code, answer.text) == (200, "{}")
    (one,) = await results(owner, of(run, "metrics"), **{"labels.name": "gpu_util"})
    assert one["batch"]["values"] == [1.0, "NaN", 3.0]
    (timing,) = await results(owner, of(run, "metrics"), **{"labels.metricType": "PROFILER_METRIC_TYPE_TIMING"})
    assert timing["batch"]["labels"]["name"] == "to_device"


async def test_what_is_refused_leaves_nothing(client: httpx.AsyncClient, owner: httpx.AsyncClient, run: Run) -> None:
    good = batch(run, "gpu_util", [1])
    uneven = {**good, "batches": [1, 2]}
    answer = await client.post(POST, json={"batches": [good, uneven]})
    message = "values, batches and timestamps must be equally long, got 1 values, 2 batches and 1 timestamps"
    assert (answer.status_code, answer.json()["error"]["error"]) == (400, message)
    nameless = await client.post(POST, json={"batches": [good, batch(run, "", [1])]})
    assert nameless.status_code == 400
    foreign = await owner.post(POST, json={"batches": [good, {**good, "labels": {"trialId": 99999, "name": "x"}}]})
    assert foreign.status_code == 404
    assert (await client.post(POST, json={"batches": [batch(run, "x", [1], trialId=99999)]})).status_code == 403
    assert await results(owner, of(run, "metrics")) == []
    assert (await owner.get("/api/v1/trials/99999/profiler/metrics")).status_code == 404
    assert (await owner.get("/api/v1/trials/99999/profiler/available_series")).status_code == 404


async def test_following_ends_with_the_trial(
    db: Database,
    client: httpx.AsyncClient,
    owner: httpx.AsyncClient,
    profiled: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profiler, "LOOK_AGAIN_S", 0.05)
    query = {"follow": "true", "labels.name": "cpu_util_simple", "labels.agentId": "n1"}
    async with asyncio.timeout(30), owner.stream("GET", of(profiled, "metrics"), params=query) as answer:
        lines = answer.aiter_lines()
        assert json.loads(await anext(lines))["result"]["batch"]["values"] == [1.5]
        # Of a moment before the last one that was read.
        await report(client, profiled, "cpu", None, time="2030-01-01T00:00:00.5Z", n1={"cpu_util_simple": 7})
        assert json.loads(await anext(lines))["result"]["batch"]["values"] == [7.0]
        await set_trial(db, profiled.trial, state="COMPLETED", end_time=datetime.now(UTC))
        assert [line async for line in lines] == []
    series = await results(owner, of(profiled, "available_series"), follow="true")
    assert len(series) == 1


async def test_what_is_committed_late_is_followed_too(
    db: Database, owner: httpx.AsyncClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id is smaller than that of a reading which was told already."""
    monkeypatch.setattr(profiler, "LOOK_AGAIN_S", 0.05)
    query = {"follow": "true", "labels.name": "cpu_util_simple"}

    async def reading(connection: Connection, value: float) -> None:
        values = {"n1": {"cpu_util_simple": value}}
        row = {"kind": "PROFILING", "metrics": values, "trial_id": run.trial, "step": None, "group": "cpu"}
        await insert_metrics(connection, values={}, **row)

    async with asyncio.timeout(30):
        async with db.transaction() as late:
            await reading(late, 1)
            async with db.transaction() as connection:
                await reading(connection, 2)
            answer = await owner.send(owner.build_request("GET", of(run, "metrics"), params=query), stream=True)
            lines = answer.aiter_lines()
            assert json.loads(await anext(lines))["result"]["batch"]["values"] == [2.0]
        assert json.loads(await anext(lines))["result"]["batch"]["values"] == [1.0]
        await set_trial(db, run.trial, state="COMPLETED", end_time=datetime.now(UTC))
        assert [line async for line in lines] == []
        await answer.aclose()
