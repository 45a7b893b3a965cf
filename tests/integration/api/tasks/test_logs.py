"""Posting and reading logs. How lines get from the bus into the table is for the logs service to test."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest
from sqlalchemy import insert, update

from libs.bus import Bus
from libs.clock import SystemClock
from libs.db.engine import Database
from libs.db.tables.logs import log_streams, task_logs
from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trials
from libs.events import subjects
from libs.events.logs import LogBatch
from tests.builders import insert_task, insert_user_session
from tests.harness import FakeClock, eventually
from tests.integration.api.tasks.service import Replica, Run, error_of, new_run, replica

NOW = datetime(2030, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)


async def add_lines(db: Database, task: str, *logs: bytes, **columns: Any) -> None:
    """Lines as the writer stores them."""
    async with db.transaction() as tx:
        stream = {"stream_key": str(uuid4()), "task_id": task, "contiguous": False, "next_seq": 1, "missing": []}
        await tx.execute(insert(log_streams).values(**stream, opened_at=NOW, written_at=NOW))
        rows = [
            {
                "task_id": task,
                "ingested_at": NOW,
                "timestamp": NOW,
                "log": log,
                **columns,
            }
            for log in logs
        ]
        for row in rows:
            await tx.execute(insert(task_logs).values(row))


async def batches(bus: Bus, task: str, count: int) -> list[LogBatch]:
    """What was handed to the logs service about a task, once there are ``count`` batches."""
    found: list[LogBatch] = []

    async def keep(message: Any) -> None:
        found.append(msgspec.msgpack.decode(message.data, type=LogBatch))

    reading = asyncio.create_task(
        bus.consume(stream=subjects.LOGS_STREAM, durable=uuid4().hex, filter=subjects.logs(task), handler=keep)
    )
    try:
        await eventually(lambda: len(found) >= count)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    return found


def records(task: str, *logs: str, **more: Any) -> dict[str, Any]:
    return {"logs": [{"task_id": task, "log": log, **more} for log in logs]}


async def test_posted_lines_are_on_the_bus_when_the_answer_comes(bus: Bus, client: httpx.AsyncClient, run: Run) -> None:
    body = records(
        run.task,
        "Logs\x00Can\x00Have\x00Null\x00Bytes\n",
        "two\n",
        allocation_id=run.allocation,
        agent_id="node-1",
        container_id="c",
        rank_id=3,
        level="LOG_LEVEL_INFO",
        stdtype="stderr",
        source="task",
        timestamp="2030-01-02T03:04:05.678900Z",
    )
    for _ in range(2):
        # As the shipper of the reference sends it.
        headers = {"content-type": "application/x-www-form-urlencoded"}
        answer = await client.post("/api/v1/task/logs", content=json.dumps(body), headers=headers)
        assert (answer.status_code, answer.text) == (200, "{}")
    first, second = await batches(bus, run.task, 2)
    line = first.lines[0]
    assert (first.task, first.contiguous, first.stream) == (run.task, False, second.stream)
    assert line.log == b"Logs\0Can\0Have\0Null\0Bytes\n"
    assert (line.rank_id, line.level, line.stdtype, line.agent_id) == (3, "INFO", "stderr", "node-1")
    assert line.allocation_id == run.allocation
    assert line.timestamp_ns == int(NOW.timestamp()) * 10**9 + 678_900_000
    assert second.lines[0].seq > first.lines[-1].seq == first.lines[0].seq + 1


async def test_lines_that_are_refused(owner: httpx.AsyncClient, run: Run) -> None:
    mixed = {"logs": [*records(run.task, "a")["logs"], *records("other", "b")["logs"]]}
    for body, status, message in [
        ({"logs": []}, 400, "len logs must be greater than 0"),
        (records("nobody", "x"), 404, "task 'nobody' not found"),
        (records(run.task, "x", id=5), 400, "ID must be nil on logs got 5 instead"),
        (mixed, 400, "can only post logs of a single taskID per task log request got "),
    ]:
        answer = await owner.post("/api/v1/task/logs", json=body)
        assert answer.status_code == status
        assert message in error_of(answer)


async def test_the_legacy_route_takes_everything(api: Replica, bus: Bus, run: Run) -> None:
    async with api.client() as client:
        refused = await client.post("/task-logs", json=[])
        assert refused.status_code == 401
        assert "message" in refused.json()
        good = {"task_id": run.task, "timestamp": "2030-01-02T03:04:05Z", "log": "hello\n", "rank": "2"}
        for body in ([good, {"task_id": "nobody", "log": "x"}, 5, {"log": None}], [], {}, "odd", None):
            answer = await client.post("/task-logs", json=body, headers=run.user_headers)
            assert (answer.status_code, answer.text) == (200, '""')
        # What Python makes of a file name that is no text.
        surrogate = json.dumps([{**good, "log": "name \udc80\n"}])
        for raw in (surrogate, "{bad", "[" * 100_000, b"\xff", ""):
            answer = await client.post("/task-logs", content=raw, headers=run.user_headers)
            assert (answer.status_code, answer.text) == (200, '""')
    first, second = await batches(bus, run.task, 2)
    assert [(line.log, line.rank_id) for line in first.lines] == [(b"hello\n", 2)]
    assert [line.log for line in second.lines] == [b"name ?\n"]


async def read(client: httpx.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line)["result"] for line in answer.text.splitlines()]


async def test_shape_of_task_and_trial_lines(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    full = {
        "level": "INFO",
        "rank_id": 1,
        "stdtype": "stdout",
        "source": "task",
        "agent_id": "node-1",
        "container_id": "f6114bb3-1234",
        "allocation_id": run.allocation,
    }
    await add_lines(db, run.task, b"hello\n", **full)
    await add_lines(db, run.task, b"plain\n")
    one, two = await read(client, f"/api/v1/tasks/{run.task}/logs")
    assert one == {
        "id": one["id"],
        "taskId": run.task,
        "allocationId": run.allocation,
        "agentId": "node-1",
        "containerId": "f6114bb3-1234",
        "rankId": 1,
        "timestamp": "2030-01-02T03:04:05.678900Z",
        "level": "LOG_LEVEL_INFO",
        "log": "hello\n",
        "source": "task",
        "stdtype": "stdout",
        "message": "[2030-01-02T03:04:05.678900Z] f6114bb3 [rank=1] || INFO: hello\n",
    }
    assert set(two) == {"id", "taskId", "timestamp", "level", "log", "message"}
    assert two["level"] == "LOG_LEVEL_UNSPECIFIED"
    of_trial = await read(client, f"/api/v1/trials/{run.trial}/logs")
    assert set(of_trial[1]) == {"id", "trialId", "timestamp", "level", "log", "message"}
    assert of_trial[0]["trialId"] == run.trial
    assert "taskId" not in of_trial[0]
    assert "allocationId" not in of_trial[0]


async def test_filters_reach_the_query(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    path = f"/api/v1/tasks/{run.task}/logs"
    await add_lines(db, run.task, b"a\n", level="ERROR", rank_id=0, stdtype="stderr")
    await add_lines(db, run.task, b"b\n", level="INFO", source="master")
    await add_lines(db, run.task, b"c\n", agent_id="node-1", timestamp=NOW + timedelta(seconds=1))

    async def found(**query: Any) -> str:
        return "".join(line["log"] for line in await read(client, path, **query)).replace("\n", "")

    assert await found() == "abc"
    assert await found(orderBy="ORDER_BY_DESC", limit=2) == "cb"
    assert await found(limit=1) == "a"
    assert await found(levels=["LOG_LEVEL_ERROR", "LOG_LEVEL_INFO"]) == "ab"
    assert await found(rankIds=[-1]) == "bc"
    assert await found(rank_ids=[0]) == "a"
    assert await found(stdtypes="stderr") == "a"
    assert await found(sources="master") == "b"
    assert await found(agentIds="node-1") == "c"
    assert await found(timestampAfter="2030-01-02T03:04:05.678900Z") == "c"
    assert await found(timestampBefore="2030-01-02T03:04:05.678900Z") == "ab"
    assert await found(searchText="B") == "b"


async def test_questions_that_are_refused(owner: httpx.AsyncClient, run: Run) -> None:
    for path, noun in ((f"/api/v1/tasks/{run.task}/logs", "task"), (f"/api/v1/trials/{run.trial}/logs", "trial")):
        negative = await owner.get(path, params={"limit": -1})
        assert (negative.status_code, negative.json()["error"]["message"]) == (400, "Limit must be >= 0")
        both = await owner.get(path, params={"limit": 1, "follow": "true"})
        assert both.json()["error"]["message"] == "Limit cannot be specified when following"
        for rest in ("", "/fields"):
            unknown = await owner.get(f"/api/v1/{noun}s/99999/logs{rest}")
            assert unknown.status_code == 404
            assert unknown.json()["error"]["message"] == f"{noun} '99999' not found"


async def test_logs_of_a_trial_with_two_tasks(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    second = f"{run.task}-1"
    async with db.transaction() as tx:
        await insert_task(tx, task_id=second, trial_id=run.trial, position=1)
    await add_lines(db, second, b"later\n", agent_id="b")
    await add_lines(db, run.task, b"one\n", b"two\n", agent_id="a")
    path = f"/api/v1/trials/{run.trial}/logs"
    assert [line["log"] for line in await read(owner, path)] == ["one\n", "two\n", "later\n"]
    tail = await read(owner, path, orderBy="ORDER_BY_DESC", limit=2)
    assert [line["log"] for line in tail] == ["later\n", "two\n"]
    (fields,) = await read(owner, f"{path}/fields")
    assert fields == {"agentIds": ["a", "b"], "containerIds": [], "rankIds": [], "stdtypes": [], "sources": []}
    (fields,) = await read(owner, f"/api/v1/tasks/{second}/logs/fields")
    assert fields["agentIds"] == ["b"]
    assert fields["allocationIds"] == []


@pytest.mark.parametrize("kind", ["task", "trial"])
async def test_followers_see_what_comes_and_end_with_the_task(
    db: Database, bus: Bus, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.api.queries.tasks.log_following.RECHECK_S", 60.0)
    run = await new_run(db)
    path = f"/api/v1/tasks/{run.task}/logs" if kind == "task" else f"/api/v1/trials/{run.trial}/logs"
    await add_lines(db, run.task, b"first\n")
    async with replica(db, bus, SystemClock()) as api, api.client(headers=run.headers) as client:
        async with client.stream("GET", path, params={"follow": "true"}) as answer:
            lines = answer.aiter_lines()
            assert json.loads(await anext(lines))["result"]["log"] == "first\n"
            await add_lines(db, run.task, b"second\n")
            await bus.publish_core(subjects.log_stored(run.task), b"")
            async with asyncio.timeout(30):  # below the time after which it would look again by itself
                assert json.loads(await anext(lines))["result"]["log"] == "second\n"
            ended = datetime.now(UTC) - timedelta(minutes=1)
            async with db.transaction() as tx:
                await tx.execute(update(tasks).where(tasks.c.task_id == run.task).values(end_time=ended))
            await bus.publish_core(subjects.event("task", run.task, "ended"), b"{}")
            async with asyncio.timeout(30):  # below the time after which it would look again by itself
                assert [line async for line in lines] == []

        async def nobody_listens() -> bool:
            return not api.app.notifier._events

        await eventually(nobody_listens)


async def test_a_follower_that_goes_away_leaves_nothing_behind(db: Database, bus: Bus) -> None:
    run = await new_run(db)
    await add_lines(db, run.task, b"first\n")
    path = f"/api/v1/tasks/{run.task}/logs?follow=true"
    async with replica(db, bus, SystemClock()) as api:
        async with api.client(headers=run.headers) as client, client.stream("GET", path) as answer:
            await anext(answer.aiter_lines())
            assert api.app.notifier._events
        await eventually(lambda: not api.app.notifier._events)


async def test_following_the_fields(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    await add_lines(db, run.task, b"a\n", rank_id=1)
    async with db.transaction() as tx:
        await tx.execute(
            update(tasks).where(tasks.c.task_id == run.task).values(end_time=datetime(2020, 1, 1, tzinfo=UTC))
        )
    (fields,) = await read(client, f"/api/v1/tasks/{run.task}/logs/fields", follow="true")
    assert fields["rankIds"] == [1]


@pytest.mark.parametrize(
    ("days", "ended_days_ago", "default", "expected"),
    [
        (-1, None, 30, {"remainingDays": -1}),
        (10, None, 30, {}),
        (10, 3.5, 30, {"remainingDays": 6}),
        (10, 10, 30, {"remainingDays": 0}),
        (0, 100, 30, {"remainingDays": 0}),
        (None, 3, 30, {"remainingDays": 27}),
        (None, 3, -1, {"remainingDays": -1}),
    ],
)
async def test_days_that_logs_are_kept_still(
    db: Database,
    bus: Bus,
    clock: FakeClock,
    owner: httpx.AsyncClient,
    run: Run,
    days: int | None,
    ended_days_ago: float | None,
    default: int,
    expected: dict[str, int],
) -> None:
    ended = None if ended_days_ago is None else clock.now() - timedelta(days=ended_days_ago)
    async with db.transaction() as tx:
        await tx.execute(update(tasks).where(tasks.c.task_id == run.task).values(end_time=ended))
        await tx.execute(update(trials).where(trials.c.id == run.trial).values(log_retention_days=days))

    async def answer(_: object) -> bytes:
        return b'{"days": %d}' % default

    async with bus.serve(subjects.rpc("logs", "retention"), answer):
        reply = await owner.get(f"/api/v1/trials/{run.trial}/remaining_log_retention_days")
    assert (reply.status_code, reply.json()) == (200, expected)


async def test_days_of_a_trial_that_does_not_exist(owner: httpx.AsyncClient) -> None:
    reply = await owner.get("/api/v1/trials/999999/remaining_log_retention_days")
    assert (reply.status_code, error_of(reply)) == (404, "trial '999999' not found")


async def test_cleanup_is_for_administrators(api: Replica, db: Database, bus: Bus, run: Run) -> None:
    async def answer(_: object) -> bytes:
        return b'{"removed": 12345678901}'

    async with db.transaction() as tx:
        token = await insert_user_session(tx, user_id=2)
    async with api.client() as client, bus.serve(subjects.rpc("logs", "cleanup"), answer):
        done = await client.post("/api/v1/cleanup_logs", headers=run.user_headers)
        assert (done.status_code, done.json()) == (200, {"removedCount": "12345678901"})
        refused = await client.post("/api/v1/cleanup_logs", headers={"Authorization": f"Bearer {token}"})
        assert (refused.status_code, error_of(refused)) == (403, "only admin privileged users can clean up logs")
