"""Runs: storage numbers, metadata, progress, early exits."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from libs.db.engine import Database
from libs.db.tables.checkpoints import storage_backends, trial_sources
from libs.db.tables.experiments import experiments, searcher_events
from libs.db.tables.trials import trials
from tests.builders import insert_checkpoint
from tests.harness import FakeClock
from tests.integration.api.tasks.service import (
    Replica,
    Run,
    error_of,
    new_experiment,
    new_run,
    row_of,
    rows_of,
    set_trial,
)


async def start(client: httpx.AsyncClient, run: Run, storage: Any) -> httpx.Response:
    return await client.post("/api/v1/runs/start", json={"runId": run.trial, "checkpointStorage": storage})


async def test_all_ranks_get_the_same_storage_number(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    storage = {"type": "shared_fs", "host_path": f"/{uuid4()}", "storage_path": None, "propagation": "rprivate"}
    answers = await asyncio.gather(*(start(client, run, storage) for _ in range(8)))
    (number,) = {answer.json()["storageId"] for answer in answers}
    assert isinstance(number, int)
    assert (await row_of(db, storage_backends, id=number)).config == storage
    kept = {**storage, "save_trial_best": 7, "save_experiment_best": 0, "save_trial_latest": 1}
    assert (await start(client, run, kept)).json() == {"storageId": number}
    assert (await start(client, run, {**storage, "host_path": "/other"})).json() != {"storageId": number}


async def test_runs_without_storage(owner: httpx.AsyncClient, run: Run) -> None:
    assert (await start(owner, run, None)).json() == {"storageId": None}
    unknown = await owner.post("/api/v1/runs/start", json={"runId": 99999, "checkpointStorage": None})
    assert (unknown.status_code, error_of(unknown)) == (404, "run '99999' not found")
    assert (await start(owner, run, {"type": "tape"})).status_code == 400


async def test_metadata_is_replaced_as_a_whole(owner: httpx.AsyncClient, run: Run) -> None:
    path = f"/api/v1/runs/{run.trial}/metadata"
    assert (await owner.get(path)).json() == {"metadata": {}}
    for metadata in ({"a": {"b": [1, 2.5, "x"]}}, {"c": True}, {}):
        answer = await owner.post(path, json={"metadata": metadata, "runId": run.trial})
        assert answer.json() == {"metadata": metadata}
        assert (await owner.get(path)).json() == {"metadata": metadata}
    refused = await owner.post(path, json={"metadata": {"a.b": 1}})
    assert refused.status_code == 400
    assert error_of(refused).startswith("metadata keys can not contain the following character(s):")
    assert (await owner.get("/api/v1/runs/99999/metadata")).status_code == 404
    assert (await owner.post("/api/v1/runs/99999/metadata", json={"metadata": {}})).status_code == 404


async def progress(client: httpx.AsyncClient, run: Run, value: Any) -> httpx.Response:
    return await client.post(f"/api/v1/trials/{run.trial}/progress", json={"progress": value, "is_raw": True})


async def test_progress_is_told_to_the_search(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    for value in (0.25, 0.5, 1.5, -1, "Infinity"):  # what is no fraction is dropped
        assert (await progress(client, run, value)).text == "{}"
    (event,) = await rows_of(db, searcher_events, experiment_id=run.experiment)
    assert (event.trial_id, event.kind, event.payload) == (run.trial, "progress", {"progress": 0.5})
    await progress(client, run, "Nan")
    (event,) = await rows_of(db, searcher_events, experiment_id=run.experiment)
    assert event.payload == {"progress": 0.0}


async def test_progress_without_a_search_is_that_of_the_experiment(db: Database, api: Replica) -> None:
    run = await new_run(db, experiment=await new_experiment(db, state="RUNNING", unmanaged=True))
    async with api.client(headers=run.user_headers) as client:
        assert (await progress(client, run, 0.25)).status_code == 200
        assert (await row_of(db, experiments, id=run.experiment)).progress == 0.25
        refused = await progress(client, run, 2)
        assert refused.status_code == 400
        assert error_of(refused) == "invalid progress value: 2.0 should be between 0 and 1"
        assert (await client.post("/api/v1/trials/99999/progress", json={})).status_code == 404
    assert await rows_of(db, searcher_events, experiment_id=run.experiment) == []


async def test_the_progress_of_a_completed_experiment_does_not_fall(db: Database, api: Replica) -> None:
    run = await new_run(db, experiment=await new_experiment(db, state="COMPLETED"))
    async with api.client(headers=run.headers) as client:
        assert (await progress(client, run, 0.25)).status_code == 200
    assert (await row_of(db, experiments, id=run.experiment)).progress is None


async def early_exit(client: httpx.AsyncClient, run: Run, reason: str) -> httpx.Response:
    return await client.post(f"/api/v1/trials/{run.trial}/early_exit", json={"reason": reason})


async def test_an_early_exit_is_told_to_the_search_once(
    db: Database, client: httpx.AsyncClient, run: Run, clock: FakeClock
) -> None:
    for reason in ("EXITED_REASON_INVALID_HP", "EXITED_REASON_INVALID_HP", "EXITED_REASON_INIT_INVALID_HP"):
        answer = await early_exit(client, run, reason)
        assert (answer.status_code, answer.text) == (200, "{}")
    trial = await row_of(db, trials, id=run.trial)
    assert (trial.early_exit_reason, trial.early_exit_deadline) == ("INVALID_HP", clock.now() + timedelta(seconds=10))
    (event,) = await rows_of(db, searcher_events, experiment_id=run.experiment)
    assert (event.kind, event.payload) == ("early_exit", {"reason": "INVALID_HP"})


@pytest.mark.parametrize("reason", ["EXITED_REASON_UNSPECIFIED", "EXITED_REASON_USER_REQUESTED_STOP", "", "INVALID_HP"])
async def test_reasons_that_are_none(client: httpx.AsyncClient, run: Run, reason: str) -> None:
    assert (await early_exit(client, run, reason)).status_code == 400


async def test_only_trials_of_a_live_search_exit_early(db: Database, api: Replica) -> None:
    run = await new_run(db, experiment=await new_experiment(db, state="RUNNING", unmanaged=True))
    async with api.client(headers=run.user_headers) as client:
        assert (await early_exit(client, run, "EXITED_REASON_INVALID_HP")).status_code == 404
        managed = await new_run(db)
        await set_trial(db, managed.trial, state="COMPLETED")
        assert (await early_exit(client, managed, "EXITED_REASON_INVALID_HP")).status_code == 200
    assert (await row_of(db, trials, id=managed.trial)).early_exit_reason is None


@pytest.mark.parametrize("body", [{"state": "validating"}, {"trialId": 1, "metadata": {"state": "validating"}}])
async def test_runner_state(db: Database, owner: httpx.AsyncClient, run: Run, body: dict[str, Any]) -> None:
    answer = await owner.post(f"/api/v1/trials/{run.trial}/runner/metadata", json=body)
    assert (answer.status_code, answer.text) == (200, "{}")
    assert (await row_of(db, trials, id=run.trial)).runner_state == "validating"
    assert (await owner.post("/api/v1/trials/99999/runner/metadata", json={"state": "x"})).status_code == 404


async def test_trial_sources(db: Database, client: httpx.AsyncClient, run: Run, clock: FakeClock) -> None:
    uuid = str(uuid4())
    info = {
        "trialId": run.trial,
        "checkpointUuid": uuid,
        "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE",
        "modelId": None,
    }
    body = {"trialSourceInfo": info}
    assert (await client.post("/api/v1/trial-source-info", json=body)).status_code == 404
    async with db.transaction() as tx:
        await insert_checkpoint(tx, uuid=uuid, task_id=run.task)
    for _ in range(2):
        answer = await client.post("/api/v1/trial-source-info", json=body)
        assert answer.json() == {"trialId": run.trial, "checkpointUuid": uuid}
    (row,) = await rows_of(db, trial_sources, trial_id=run.trial)
    assert (row.trial_source_info_type, row.model_id) == ("INFERENCE", None)
    info["trialSourceInfoType"] = "TRIAL_SOURCE_INFO_TYPE_UNSPECIFIED"
    assert (await client.post("/api/v1/trial-source-info", json=body)).status_code == 400
