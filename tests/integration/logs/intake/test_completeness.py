"""A pod learns when everything it printed is stored: before that its shipper must not be told to end."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from libs.bus import BusSettings
from libs.db.engine import Database
from tests.harness import eventually
from tests.integration.logs.conftest import Service, Task, chunk, logs_settings, new_task, post

COMPLETE = {"complete": True, "missing": [], "stored": {"stdout": 4, "stderr": 0}}


async def ask(client: httpx.AsyncClient, task: Task, wait_s: object = 0, **headers: str) -> dict[str, Any]:
    sent = {**task.headers(), **headers}
    answer = await client.get("/ingest/v1/complete", params={"wait_s": str(wait_s)}, headers=sent)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_pod_is_complete_when_every_line_of_both_outputs_is_stored(
    intake: httpx.AsyncClient, task: Task
) -> None:
    assert await ask(intake, task) == {
        "complete": False,
        "missing": ["stdout", "stderr"],
        "stored": {"stdout": 0, "stderr": 0},
    }
    await post(intake, task, chunk([], ends=True, stream="stderr"))
    await post(intake, task, chunk([b"a", b"b"]))
    await eventually(lambda: _is(intake, task, missing=["stdout"], stdout=2))
    await post(intake, task, chunk([b"d"], first=3, ends=True))
    assert not (await ask(intake, task, 0.2))["complete"], "a line before the end is missing"
    await post(intake, task, chunk([b"c"], first=2))
    assert await ask(intake, task, 10) == COMPLETE


@pytest.mark.parametrize("wait_s", ["-1", "nan", "inf", "long", ""])
async def test_nonsense_is_not_waited_for(intake: httpx.AsyncClient, task: Task, wait_s: str) -> None:
    async with asyncio.timeout(5):
        assert not (await ask(intake, task, wait_s))["complete"]


async def test_only_a_token_that_is_known_is_answered(intake: httpx.AsyncClient, db: Database, task: Task) -> None:
    assert (await intake.get("/ingest/v1/complete")).status_code == 401
    stranger = Task(task="t", allocation="t.1", token="unknown")
    assert (await intake.get("/ingest/v1/complete", headers=stranger.headers())).status_code == 503


async def test_pods_restarts_and_tasks_are_complete_one_by_one(
    intake: httpx.AsyncClient, db: Database, task: Task
) -> None:
    for stream in ("stdout", "stderr"):
        await post(intake, task, chunk([], ends=True, stream=stream))
    assert (await ask(intake, task, 10))["complete"]
    assert not (await ask(intake, await new_task(db)))["complete"]
    assert not (await ask(intake, task, **{"x-det-pod": "pod-1"}))["complete"]
    assert not (await ask(intake, task, **{"x-det-restart": "1"}))["complete"]


async def test_any_replica_knows_it_and_so_does_the_next_run(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task
) -> None:
    async with (
        Service(logs_settings(database_url, bus_settings, name="one")) as one,
        Service(logs_settings(database_url, bus_settings, name="other")) as other,
    ):
        waiting = asyncio.create_task(ask(other, task, 10))
        await post(one, task, chunk([b"a"] * 4, ends=True))
        await post(one, task, chunk([], ends=True, stream="stderr"))
        found = await waiting
        assert found == COMPLETE or await ask(other, task, 10) == COMPLETE
    async with Service(logs_settings(database_url, bus_settings)) as restarted:
        assert await ask(restarted, task) == COMPLETE


async def _is(client: httpx.AsyncClient, task: Task, *, missing: list[str], stdout: int) -> bool:
    found = await ask(client, task)
    return found["missing"] == missing and found["stored"]["stdout"] == stdout
