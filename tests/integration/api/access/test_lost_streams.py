"""Whoever loses a role reads no further: every stream of the interface ends, with what a new request would be told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import ClientSession
from sqlalchemy import delete, insert

from libs.db.engine import Connection
from libs.db.tables.logs import log_streams, task_logs
from libs.db.tables.users import role_assignments
from libs.ids import new_uuid
from services.api.access.rights.loading import groups_of
from services.api.routes.table import all_routes
from tests.builders import insert_allocation, insert_experiment, insert_metrics, insert_task, insert_trial
from tests.harness.api import ApiProcess
from tests.integration.api.access.persons import give
from tests.integration.api.updates.following import following
from tests.integration.api.world import CLUSTER, World

CLUSTER_ADMIN, VIEWER, WORKSPACE, READER = 1, 4, 1, 2
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Followed:
    """A stream that does not end by itself.

    role    that it takes, for the whole cluster where that is ``CLUSTER_ADMIN``
    status  and the end of the message, of whoever has it no more
    """

    route: str
    query: str
    role: int = VIEWER
    status: int = 404
    message: str = "not found, please check your permissions."


_METRIC = "metricName=loss&metricType=METRIC_TYPE_VALIDATION"
_CHARTS = "/api/v1/experiments/{experimentId}/metrics-stream"
STREAMS = (
    Followed("/api/v1/tasks/{taskId}/logs", "follow=true"),
    Followed("/api/v1/tasks/{taskId}/logs/fields", "follow=true"),
    Followed("/api/v1/trials/{trialId}/logs", "follow=true"),
    Followed("/api/v1/trials/{trialId}/logs/fields", "follow=true"),
    Followed("/api/v1/trials/{trialId}/profiler/metrics", "follow=true"),
    Followed("/api/v1/trials/{trialId}/profiler/available_series", "follow=true"),
    Followed("/api/v1/experiments/metrics-stream/metric-names", "ids={experimentId}"),
    Followed(f"{_CHARTS}/batches", _METRIC),
    Followed(f"{_CHARTS}/trials-snapshot", f"{_METRIC}&batchesProcessed=10"),
    Followed(f"{_CHARTS}/trials-sample", _METRIC),
    Followed(
        "/api/v1/master/logs",
        "follow=true",
        CLUSTER_ADMIN,
        403,
        "required permissions: PERMISSION_TYPE_VIEW_MASTER_LOGS",
    ),
)
MISSING = {"experimentId": 99999, "trialId": 99998, "taskId": "missing"}
ENDS_BY_ITSELF = {f"/api/v1/trials/metrics/{kind}_metrics" for kind in ("trial", "training", "validation")}


def test_every_stream_is_tried() -> None:
    streams = {route.path for route in all_routes() if route.stream}
    assert streams == {each.route for each in STREAMS} | ENDS_BY_ITSELF


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    path = world.directory / "lost-streams.yaml"
    path.write_text(f"{CLUSTER}security: {{authz: {{type: rbac}}}}\nfeature_switches: [streaming_updates]\n")
    every = {"recheck_interval_s": 0.2}
    http = {"host": "127.0.0.1", "port": 0, "shutdown_grace_s": 1, **every}
    with world.api("lost-streams", cluster_config=str(path), http=http, updates=every) as api:
        yield api


@pytest.fixture(scope="module")
def objects(world: World) -> dict[str, Any]:
    """A trial that runs, with a line of its log and metrics: each stream begins with something."""

    async def work(connection: Connection) -> dict[str, Any]:
        experiment = await insert_experiment(connection)
        trial = await insert_trial(connection, experiment_id=experiment, run_id=1)
        task = await insert_task(connection, trial_id=trial, experiment_id=experiment)
        await insert_allocation(connection, task_id=task, state="RUNNING")
        stream = {"stream_key": new_uuid(), "task_id": task, "contiguous": False, "next_seq": 1, "missing": []}
        await connection.execute(insert(log_streams).values(**stream, opened_at=NOW, written_at=NOW))
        line = {"task_id": task, "ingested_at": NOW, "timestamp": NOW, "log": b"one"}
        await connection.execute(insert(task_logs).values(line))
        await insert_metrics(connection, trial_id=trial, step=10, values={"loss": 1.0})
        readings = {"kind": "PROFILING", "metrics": {"agent": {"cpu_util_simple": 1.0}}, "trial_id": trial}
        await insert_metrics(connection, **readings, step=None, values={}, group="cpu")
        return {"experimentId": experiment, "trialId": trial, "taskId": task}

    made: dict[str, Any] = world.in_database(work)
    return made


async def give_role(world: World, role: int) -> None:
    scope = None if role == CLUSTER_ADMIN else WORKSPACE
    await asyncio.to_thread(world.in_database, lambda connection: give(connection, READER, role, scope))


async def take_role(world: World, role: int) -> None:
    """As another replica does, of which this one has not heard."""

    async def work(connection: Connection) -> None:
        scope = role_assignments.c.workspace_id
        lost = scope.is_(None) if role == CLUSTER_ADMIN else scope == WORKSPACE
        mine = role_assignments.c.group_id.in_(groups_of(READER))
        await connection.execute(delete(role_assignments).where(lost, mine))

    await asyncio.to_thread(world.in_database, work)


@pytest.mark.parametrize("followed", STREAMS, ids=lambda followed: followed.route)
async def test_a_stream_ends(world: World, session: ClientSession, objects: dict[str, Any], followed: Followed) -> None:
    await give_role(world, followed.role)
    address = f"{followed.route}?{followed.query}".format(**objects)
    async with asyncio.timeout(60), session.get(address) as answer:
        assert answer.status == 200, await answer.text()
        assert "result" in json.loads(await answer.content.readline())
        await take_role(world, followed.role)
        last = [json.loads(line) async for line in answer.content][-1]["error"]
    assert last["httpCode"] == followed.status
    assert last["message"].endswith(followed.message)
    # What is hidden and what is not there read the same.
    for idents in (objects, MISSING):
        async with session.get(f"{followed.route}?{followed.query}".format(**idents)) as answer:
            assert answer.status == followed.status
            message = (await answer.json())["error"]["message"]
        for name, ident in objects.items():
            message = message.replace(f"'{idents[name]}'", f"'{ident}'")
        assert message == last["message"]


async def test_updates_of_what_is_seen_no_more_end(world: World, api: ApiProcess, token: str) -> None:
    await give_role(world, VIEWER)
    async with following(api, token) as follower:
        await follower.subscribe(projects={"workspace_ids": [WORKSPACE]})
        assert follower.ids("projects")
        await take_role(world, VIEWER)
        await follower.until(lambda: not follower.ids("projects"), timeout_s=60)
