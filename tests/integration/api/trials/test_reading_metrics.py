"""Raw metrics and workloads, as the SDK and the command line read them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from libs.db.engine import Database
from tests.integration.api.checkpoints.test_checkpoints import checkpoint
from tests.integration.api.tasks.service import Run, new_run, set_trial
from tests.integration.api.trials.test_metrics import accepted

TRIAL_METRICS = "/api/v1/trials/metrics/trial_metrics"


async def read(client: httpx.AsyncClient, path: str, **query: Any) -> list[list[dict[str, Any]]]:
    """Pages of a stream."""
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line)["result"]["metrics"] for line in answer.text.splitlines()]


async def test_reports_come_by_trial_run_and_step(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    other = await new_run(db)
    for trial in (other, run):
        for step in (2, 1):
            await accepted(owner, trial, step=step, loss=step)
    await accepted(owner, run, "validation", 1, loss=0.5)
    await accepted(owner, run, "mine", 1, x=1)
    await set_trial(db, run.trial, run_id=2)
    await accepted(owner, run, step=2, run_id=2, loss=9)

    (first, second) = await read(owner, TRIAL_METRICS, trialIds=[other.trial, run.trial], group="training")
    rows = [
        (row["trialId"], row["trialRunId"], row["totalBatches"], row["metrics"]["avg_metrics"])
        for row in first + second
    ]
    assert rows == [
        (run.trial, 1, 1, {"loss": 1}),
        (run.trial, 2, 2, {"loss": 9}),
        (other.trial, 1, 1, {"loss": 1}),
        (other.trial, 1, 2, {"loss": 2}),
    ]
    assert first[0]["endTime"] == "2030-01-01T00:00:00.000Z"
    assert first[0]["archived"] is False
    (everything,) = await read(owner, TRIAL_METRICS, trialIds=[run.trial], group="")
    assert {row["group"] for row in everything} == {"training", "validation", "mine"}
    (validation,) = await read(owner, "/api/v1/trials/metrics/validation_metrics", trialIds=[run.trial])
    assert [row["metrics"] for row in validation] == [{"validation_metrics": {"loss": 0.5}}]
    (training,) = await read(owner, "/api/v1/trials/metrics/training_metrics", trialIds=[run.trial])
    assert training == first
    assert await read(owner, TRIAL_METRICS, trialIds=[run.trial], group="none") == []


async def test_pages_neither_skip_nor_repeat(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    for step in range(4):
        for group in ("training", "a", "b"):
            await accepted(client, run, group, step, x=1)
    pages = await read(client, TRIAL_METRICS, trialIds=[run.trial], group="", size=5)
    assert [len(page) for page in pages] == [5, 5, 2]
    ids = [row["id"] for page in pages for row in page]
    assert len(set(ids)) == 12


async def test_metrics_of_nobody(owner: httpx.AsyncClient, run: Run) -> None:
    nothing = await owner.get(TRIAL_METRICS)
    assert (nothing.status_code, nothing.json()["error"]["message"]) == (400, "must specify at least one trialId")
    unknown = await owner.get(TRIAL_METRICS, params={"trialIds": [run.trial, 99999]})
    assert (unknown.status_code, unknown.json()["error"]["message"]) == (404, "trial '99999' not found")


@pytest.fixture
async def busy(client: httpx.AsyncClient, run: Run) -> Run:
    """Training at 10 and 20, validation at 20 and 30, checkpoints at 20 (deleted) and 30."""
    await accepted(client, run, step=10, loss=1, batches=[{"loss": 2}])
    await accepted(client, run, step=20, loss=3)
    await accepted(client, run, "validation", 20, loss=0.5, acc="NaN")
    await accepted(client, run, "validation", 30, loss=0.25)
    for steps in (20, 30):
        body = checkpoint(run, steps=steps)
        await client.post("/api/v1/checkpoints", json=body)
        if steps == 20:
            patch = {"checkpoints": [{"uuid": body["uuid"], "resources": {}}]}
            assert (await client.patch("/api/v1/checkpoints", json=patch)).status_code == 200
    return run


async def workloads(client: httpx.AsyncClient, run: Run, **query: Any) -> list[tuple[str, int]]:
    answer = (await client.get(f"/api/v1/trials/{run.trial}/workloads", params=query)).json()
    assert all(len(workload) == 1 for workload in answer["workloads"])
    return [(kind, entry["totalBatches"]) for workload in answer["workloads"] for kind, entry in workload.items()]


T10, T20, V20, V30, C20, C30 = (
    ("training", 10),
    ("training", 20),
    ("validation", 20),
    ("validation", 30),
    ("checkpoint", 20),
    ("checkpoint", 30),
)


async def test_workloads_are_filtered(client: httpx.AsyncClient, busy: Run) -> None:
    assert set(await workloads(client, busy)) == {T10, T20, V20, V30, C20, C30}
    assert set(await workloads(client, busy, filter="FILTER_OPTION_CHECKPOINT")) == {V20, V30, C20, C30}
    assert set(await workloads(client, busy, filter="FILTER_OPTION_VALIDATION")) == {V20, V30}
    kept = await workloads(
        client, busy, filter="FILTER_OPTION_CHECKPOINT_OR_VALIDATION", removeDeletedCheckpoints="true"
    )
    assert set(kept) == {V20, V30, C30}


async def test_workloads_are_sorted(client: httpx.AsyncClient, busy: Run) -> None:
    steps = [step for _, step in await workloads(client, busy)]
    assert steps == [10, 20, 20, 20, 30, 30]
    assert [step for _, step in await workloads(client, busy, orderBy="ORDER_BY_DESC", sortKey="batches")] == steps[
        ::-1
    ]
    by_loss = await workloads(client, busy, sortKey="loss", metricType="METRIC_TYPE_VALIDATION")
    assert by_loss[:2] == [V30, V20]
    by_training = await workloads(client, busy, sortKey="loss", group="training", orderBy="ORDER_BY_DESC")
    assert by_training[:2] == [T20, T10]


async def test_workloads_are_paged(owner: httpx.AsyncClient, busy: Run) -> None:
    path = f"/api/v1/trials/{busy.trial}/workloads"
    page = (await owner.get(path, params={"offset": 4, "limit": 1})).json()
    assert page["pagination"] == {"offset": 4, "limit": 1, "startIndex": 4, "endIndex": 5, "total": 6}
    assert len(page["workloads"]) == 1
    everything = (await owner.get(path)).json()["pagination"]
    assert (everything["endIndex"], everything["total"]) == (6, 6)
    assert (await owner.get("/api/v1/trials/99999/workloads")).status_code == 404


async def test_contents_of_workloads(client: httpx.AsyncClient, busy: Run) -> None:
    path = f"/api/v1/trials/{busy.trial}/workloads"
    first = (await client.get(path)).json()["workloads"][0]["training"]
    assert first["metrics"] == {"avgMetrics": {"loss": 1}, "batchMetrics": []}
    first = (await client.get(path, params={"includeBatchMetrics": "true"})).json()["workloads"][0]["training"]
    assert first["metrics"]["batchMetrics"] == [{"loss": 2}]
    found = (await client.get(path, params={"filter": "FILTER_OPTION_CHECKPOINT"})).json()["workloads"]
    states = [entry["checkpoint"]["state"] for entry in found if "checkpoint" in entry]
    assert states == ["STATE_DELETED", "STATE_COMPLETED"]
