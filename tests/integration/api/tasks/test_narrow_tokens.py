"""What a task reaches by its tokens: what is its own, and by the token of its user nothing that would outlast it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text, update

from libs.bus import Bus
from libs.db.engine import Database
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations, gather_members, tasks
from libs.db.tables.trials import trials
from libs.db.tables.users import users
from services.api.access.route_permission import PERSONS
from services.api.http.routing import Route
from services.api.routes.table import all_routes
from tests.builders import insert_checkpoint
from tests.harness import FakeClock
from tests.integration.api.tasks.service import (
    CONFIG,
    Replica,
    Run,
    error_of,
    new_experiment,
    new_run,
    replica,
    row_of,
    rows_of,
)

ALLOCATION_TOKEN, USER_TOKEN = "the token of the task", "the narrowed token of its user"
TOKENS = pytest.mark.parametrize("kind", [ALLOCATION_TOKEN, USER_TOKEN])
ROUTES = [route for route in all_routes() if route.permission.needs_token]
NEEDS_NOTHING_OF_ITS_OWN = {"/api/v1/me", "/api/v1/auth/user", "/api/v1/auth/logout"}


@asynccontextmanager
async def calling(db: Database, bus: Bus, clock: FakeClock, run: Run, kind: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client inside of ``run``, by one of its tokens."""
    headers = run.headers if kind is ALLOCATION_TOKEN else run.task_user_headers
    async with (
        replica(db, bus, clock, narrow_user_tokens=True) as api,
        api.client(headers=headers, params={"timeout_seconds": 0, "trialIds": run.trial}) as client,
    ):
        yield client


def path_of(route: Route, run: Run, checkpoint: str) -> str:
    """The path of a route, about ``run`` wherever it has a place for that."""
    ids = {
        "allocationId": run.allocation,
        "resourcesId": run.allocation,
        "taskId": run.task,
        "notebookId": run.task,
        "trialId": run.trial,
        "runId": run.trial,
        "experimentId": run.experiment,
        "experiment_id": run.experiment,
        "checkpointUuid": checkpoint,
        "uuid": checkpoint,
        "id": run.trial if "/trials/" in route.path else run.experiment,
    }
    return re.sub(r"\{(\w+)(?::path)?\}", lambda found: str(ids.get(found[1], 1)), route.path)


def body_of(route: Route, run: Run, checkpoint: str) -> dict[str, Any] | None:
    """A body that is about ``run``; None where it makes no difference."""
    reported = {"uuid": str(uuid4()), "taskId": run.task, "allocationId": run.allocation, "state": "STATE_COMPLETED"}
    info = {
        "trialId": run.trial,
        "checkpointUuid": checkpoint,
        "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE",
    }
    bodies: dict[str, dict[str, Any]] = {
        "POST /api/v1/runs/start": {"runId": run.trial},
        "POST /api/v1/trial-source-info": {"trialSourceInfo": info},
        "POST /api/v1/task/logs": {"logs": [{"task_id": run.task, "log": "x"}]},
        "POST /api/v1/checkpoints": reported,
        "PATCH /api/v1/checkpoints": {"checkpoints": [{"uuid": checkpoint, "resources": {"resources": {"a": 1}}}]},
        "POST /api/v1/trials/profiler/metrics": {"batches": [{"labels": {"trialId": run.trial, "name": "gpu_util"}}]},
        "POST /api/v1/checkpoints/{checkpointUuid}/metadata": {"checkpoint": {"metadata": {"a": 1}}},
        "POST /api/v1/webhooks/custom": {"experimentId": run.experiment, "trialId": run.trial, "data": {"title": "t"}},
    }
    return bodies.get(f"{route.method} {route.path}")


async def new_checkpoint(db: Database, run: Run, **values: Any) -> str:
    row = {"task_id": run.task, "trial_id": run.trial, "experiment_id": run.experiment, **values}
    async with db.transaction() as tx:
        return await insert_checkpoint(tx, **row)


async def everything_of(db: Database, run: Run) -> list[Any]:
    """The rows that a task could have changed."""
    return [
        await row_of(db, experiments, id=run.experiment),
        await row_of(db, trials, id=run.trial),
        await row_of(db, tasks, task_id=run.task),
        await row_of(db, allocations, allocation_id=run.allocation),
        await rows_of(db, checkpoints, experiment_id=run.experiment),
        await rows_of(db, gather_members, allocation_id=run.allocation),
        await rows_of(db, users),
    ]


@TOKENS
async def test_no_call_takes_the_token_of_another_task(db: Database, bus: Bus, clock: FakeClock, kind: str) -> None:
    mine, theirs = await new_run(db), await new_run(db, owner=2)
    checkpoint = await new_checkpoint(db, theirs)
    before = await everything_of(db, theirs)
    taken = []
    async with calling(db, bus, clock, mine, kind) as client:
        client.params = client.params.set("trialIds", str(theirs.trial))
        for route in ROUTES:
            path, body = path_of(route, theirs, checkpoint), body_of(route, theirs, checkpoint)
            answer = await client.request(route.method, path, json=body)
            refused = 401 if route.raw and kind is ALLOCATION_TOKEN else 403
            if answer.status_code != refused:
                taken.append((route.path, answer.status_code))
    assert {path for path, _ in taken} == NEEDS_NOTHING_OF_ITS_OWN, taken
    assert await everything_of(db, theirs) == before


@TOKENS
async def test_a_task_calls_what_the_harness_calls_about_its_own(
    db: Database, bus: Bus, clock: FakeClock, kind: str
) -> None:
    run = await new_run(db)
    checkpoint = await new_checkpoint(db, run)
    refused = []
    async with calling(db, bus, clock, run, kind) as client:
        for route in ROUTES:
            if route.permission.own is None or (route.raw and kind is ALLOCATION_TOKEN):
                continue
            path, body = path_of(route, run, checkpoint), body_of(route, run, checkpoint)
            answer = await client.request(route.method, path, json=body)
            if answer.status_code in (401, 403) or answer.status_code >= 500:
                refused.append((route.path, answer.status_code))
    assert refused == []


@TOKENS
async def test_checkpoints_that_a_configuration_names_are_read_and_not_written(
    db: Database, bus: Bus, clock: FakeClock, kind: str
) -> None:
    theirs, other = await new_run(db), await new_run(db)
    of_trial, by_uuid, foreign = await new_checkpoint(db, theirs), await new_checkpoint(db, other), str(uuid4())
    foreign = await new_checkpoint(db, other)
    searcher = {**CONFIG["searcher"], "source_trial_id": theirs.trial, "source_checkpoint_uuid": by_uuid}
    run = await new_run(db, experiment=await new_experiment(db, config={**CONFIG, "searcher": searcher}))
    async with calling(db, bus, clock, run, kind) as client:
        for uuid, status in ((of_trial, 200), (by_uuid, 200), (foreign, 403), (str(uuid4()), 404)):
            assert (await client.get(f"/api/v1/checkpoints/{uuid}")).status_code == status
        for uuid in (of_trial, by_uuid, foreign, foreign.upper(), "{" + foreign + "}"):
            left = {"checkpoints": [{"uuid": uuid, "resources": {"resources": {}}}]}
            answer = await client.patch("/api/v1/checkpoints", json=left)
            assert (answer.status_code, error_of(answer)) == (
                403,
                "the token of a task may do this with its own checkpoint only",
            )


async def test_checkpoint_gc_writes_what_its_experiment_has(db: Database, bus: Bus, clock: FakeClock) -> None:
    trial, other = await new_run(db), await new_run(db)
    gc = await new_run(db, experiment=trial.experiment)
    async with db.transaction() as tx:
        await tx.execute(text("DELETE FROM trial_tasks WHERE task_id = :task"), {"task": gc.task})
        await tx.execute(
            update(tasks)
            .where(tasks.c.task_id == gc.task)
            .values(task_type="CHECKPOINT_GC", experiment_id=trial.experiment)
        )
    deleted = [await new_checkpoint(db, trial), await new_checkpoint(db, other)]
    async with calling(db, bus, clock, gc, ALLOCATION_TOKEN) as client:
        for uuid, status in zip(deleted, (200, 403), strict=True):
            left = {"checkpoints": [{"uuid": uuid, "resources": {"resources": {}}}]}
            assert (await client.patch("/api/v1/checkpoints", json=left)).status_code == status
    states = [(await row_of(db, checkpoints, uuid=uuid)).state for uuid in deleted]
    assert states == ["DELETED", "COMPLETED"]


async def test_another_trial_of_the_same_experiment_is_not_its_own(api: Replica, db: Database, run: Run) -> None:
    sibling = await new_run(db, experiment=run.experiment)
    async with api.client(headers=run.headers) as client:
        answer = await client.post(f"/api/v1/trials/{sibling.trial}/progress", json={"progress": 0.5})
        assert (answer.status_code, error_of(answer)) == (
            403,
            "the token of a task may do this with its own trial only",
        )


async def test_the_user_token_of_a_task_reaches_what_its_user_does(api: Replica, run: Run) -> None:
    async with api.client(headers=run.task_user_headers) as client:
        assert (await client.get("/api/v1/me")).json()["user"]["username"] == "admin"
        assert (await client.get("/api/v1/experiments")).status_code == 200
        assert (await client.get("/api/v1/users")).status_code == 200
        assert (await client.put("/api/v1/templates/from-a-task", json={"config": {}})).status_code == 200


async def test_the_user_token_of_a_task_makes_nothing_that_outlasts_it(api: Replica, db: Database, run: Run) -> None:
    # Clients of OAuth are there only with the setting for them.
    here = [route for route in ROUTES if not route.path.startswith("/oauth2/")]
    persons = {f"{route.method} {route.path}": route for route in here if route.permission is PERSONS}
    assert set(persons) == {
        "POST /api/v1/users",
        "PATCH /api/v1/users",
        "PATCH /api/v1/users/{userId}",
        "POST /api/v1/users/{userId}/password",
        "POST /api/v1/tokens",
        "PATCH /api/v1/tokens/{tokenId}",
        "PATCH /api/v1/users/assignments",
        "POST /api/v1/groups",
        "PUT /api/v1/groups/{groupId}",
        "DELETE /api/v1/groups/{groupId}",
        "POST /api/v1/roles/add-assignments",
        "POST /api/v1/roles/remove-assignments",
    }
    before = await everything_of(db, run)
    async with api.client(headers=run.task_user_headers) as client:
        for route in persons.values():
            answer = await client.request(route.method, path_of(route, run, ""), content="{}")
            assert (answer.status_code, error_of(answer)) == (
                403,
                "not with the token of a task: log in to do this",
            )
    assert await everything_of(db, run) == before


async def test_the_user_token_of_a_task_ends_with_the_deactivation_of_its_user(api: Replica, db: Database) -> None:
    admin, theirs = await new_run(db), await new_run(db, owner=2)
    async with api.client(headers=admin.user_headers) as boss, api.client(headers=theirs.task_user_headers) as client:
        assert (await client.get("/api/v1/me")).status_code == 200
        for active in (False, True):
            assert (await boss.patch("/api/v1/users/2", json={"active": active})).status_code == 200
            assert (await client.get("/api/v1/me")).status_code == 401
    async with api.client(headers=theirs.headers) as client:
        assert (await client.get("/api/v1/me")).status_code == 200, "the task itself goes on"
