"""Interactive and generic tasks whose owners let the queue preempt them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from libs.db.engine import Connection
from libs.db.tables.tasks import allocations
from tests.builders import insert_allocation
from tests.harness.det import Det
from tests.integration.api.interactive.conftest import Task
from tests.integration.api.world import NOW, World


def preemption_of(world: World, task: str) -> tuple[bool, int]:
    columns = allocations.c

    async def read(connection: Connection) -> Any:
        query = select(columns.preemptible, columns.preemption_timeout_s).where(columns.task_id == task)
        return tuple((await connection.execute(query)).one())

    found: tuple[bool, int] = world.in_database(read)
    return found


@pytest.mark.parametrize(("said", "is_preemptible"), [("true", True), ("false", False), ("", False)])
def test_a_command_says_whether_it_may_be_preempted(
    det: Det, admin: httpx.Client, world: World, said: str, is_preemptible: bool
) -> None:
    asked = ["--config", f"resources.preemptible={said}"] if said else []
    task = det("command", "run", "-d", "--config", "resources.slots=0", *asked, "true").out.split()[-1]
    resources = admin.get(f"/api/v1/commands/{task}").json()["config"]["resources"]
    assert resources.get("preemptible") is (True if is_preemptible else None)
    assert preemption_of(world, task)[0] is is_preemptible
    if is_preemptible:
        assert preemption_of(world, task)[1] == 0, "its program does not ask whether to leave, so SIGTERM comes at once"


def test_what_is_no_answer_is_refused_by_the_name_of_the_field(det: Det) -> None:
    said = det.fails("command", "run", "-d", "--config", "resources.preemptible=perhaps", "true").err
    assert "resources.preemptible" in said


def test_a_generic_task_may_be_preempted_in_its_first_run(admin: httpx.Client, world: World) -> None:
    config = "entrypoint: [sh, -c, sleep 1]\nresources: {slots: 0, preemptible: true}\npreemption_timeout: 7\n"
    reply = admin.post("/api/v1/generic-tasks", json={"config": config, "contextDirectory": []})
    task = reply.json()["taskId"]
    assert preemption_of(world, task) == (True, 7), "it may ask, as training code does"
    shown = json.loads(admin.get(f"/api/v1/tasks/{task}/config").json()["config"])
    assert shown["resources"]["preemptible"] is True


def test_a_task_that_was_preempted_is_listed_once_and_as_it_is_now(
    admin: httpx.Client, task: Task, world: World
) -> None:
    ident = task("NOTEBOOK", allocation={"state": "TERMINATED", "assigned_at": NOW, "released_at": NOW})

    async def come_back(connection: Connection) -> None:
        job = await connection.scalar(select(allocations.c.job_id).where(allocations.c.task_id == ident))
        for attempt in range(2, 11):
            row = {"allocation_id": f"{ident}.{attempt}", "job_id": job, "name": "n", "pool": "gpus"}
            ended = {} if attempt == 10 else {"state": "TERMINATED", "released_at": NOW}
            later = NOW + timedelta(minutes=attempt)
            await insert_allocation(connection, task_id=ident, requested_at=later, **row, **ended)

    world.in_database(come_back)
    assert admin.get(f"/api/v1/notebooks/{ident}").json()["notebook"]["state"] == "STATE_QUEUED"
    listed = [one for one in admin.get("/api/v1/notebooks").json()["notebooks"] if one["id"] == ident]
    assert [one["state"] for one in listed] == ["STATE_QUEUED"]
    assert admin.post(f"/api/v1/notebooks/{ident}/kill").status_code == 200

    async def killed(connection: Connection) -> Any:
        where = allocations.c.task_id == ident
        asked = where & allocations.c.kill_reason.is_not(None)
        return await connection.scalar(select(allocations.c.allocation_id).where(asked))

    assert world.in_database(killed) == f"{ident}.10"
