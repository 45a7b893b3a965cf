"""What is done to interactive tasks that exist, as far as the api does it: it asks, and the scheduler ends them
(docs/reference/tasks-and-cli.md 2.9, 2.10 and 2.12)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.builders import insert_allocation_session
from tests.harness.api import ApiProcess
from tests.integration.api.interactive.conftest import Columns, Task
from tests.integration.api.world import CLUSTER, World

KINDS = {"NOTEBOOK": "notebook", "TENSORBOARD": "tensorboard", "SHELL": "shell", "COMMAND": "command"}
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
RUNNING = {"state": "RUNNING", "assigned_at": LONG_AGO}
ENDED = {"state": "TERMINATED", "assigned_at": LONG_AGO, "released_at": LONG_AGO}


def post(client: httpx.Client, path: str, body: Any = None) -> Any:
    reply = client.post(f"/api/v1/{path}", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def refused(reply: httpx.Response, status: int = 400) -> str:
    assert reply.status_code == status, reply.text
    text: str = reply.json()["error"]["error"]
    return text


@pytest.mark.parametrize("task_type", KINDS)
@pytest.mark.parametrize("allocation", [{}, RUNNING], ids=["waits", "runs"])
def test_the_scheduler_is_asked_to_kill(
    admin: httpx.Client, task: Task, columns_of: Columns, task_type: str, allocation: dict[str, Any]
) -> None:
    noun = KINDS[task_type]
    ident = task(task_type, allocation=allocation)
    for _ in range(2):
        assert post(admin, f"{noun}s/{ident}/kill")[noun]["id"] == ident
    row = columns_of(ident)
    assert (row["kill_reason"], row["killed_at"]) == ("user requested kill", None)


def test_killing_what_has_ended_changes_nothing(admin: httpx.Client, task: Task, columns_of: Columns) -> None:
    ident = task("COMMAND", allocation=ENDED, task={"end_time": LONG_AGO})
    shown = post(admin, f"commands/{ident}/kill")["command"]
    assert (shown["state"], shown["exitStatus"]) == ("STATE_TERMINATED", "allocation exited successfully")
    assert columns_of(ident)["kill_reason"] is None


@pytest.mark.parametrize("task_type", KINDS)
def test_a_new_priority_counts_in_the_queue_and_is_shown(
    admin: httpx.Client, task: Task, columns_of: Columns, task_type: str
) -> None:
    noun = KINDS[task_type]
    ident = task(task_type)
    for priority in (0, 100, -1):
        body = {"priority": priority}
        assert refused(admin.post(f"/api/v1/{noun}s/{ident}/set_priority", json=body)) == (
            "priority must be between 1 and 99"
        )
    assert columns_of(ident)["job_priority"] is None
    assert post(admin, f"{noun}s/{ident}/set_priority", {"priority": 7})[noun]["id"] == ident
    assert columns_of(ident)["job_priority"] == 7
    config = admin.get(f"/api/v1/{noun}s/{ident}").json()["config"]
    assert config["resources"] == {"slots": 1, "priority": 7}
    jobs = admin.get("/api/v1/job-queues", params={"limit": 1000}).json()["jobs"]
    (job,) = [job for job in jobs if job["entityId"] == ident]
    assert (job["type"], job["priority"], job["name"]) == (f"TYPE_{task_type}", 7, noun)
    assert (job["isPreemptible"], job["workspaceId"]) == (False, 1)
    post(admin, "job-queues", {"updates": [{"jobId": job["jobId"], "weight": 2.5}]})
    assert columns_of(ident)["config"]["resources"] == {"slots": 1, "priority": 7, "weight": 2.5}
    moved = admin.post("/api/v1/job-queues", json={"updates": [{"jobId": job["jobId"], "resourcePool": "cpus"}]})
    assert refused(moved) == f"setting resource pool for job type {task_type} is not supported"


def test_the_priority_of_what_has_ended_stays(admin: httpx.Client, task: Task, columns_of: Columns) -> None:
    ident = task("SHELL", allocation=ENDED, task={"end_time": LONG_AGO})
    says = refused(admin.post(f"/api/v1/shells/{ident}/set_priority", json={"priority": 7}))
    assert says == f"shell '{ident}' has ended: its priority cannot change any more"
    assert columns_of(ident)["job_priority"] is None


@pytest.fixture(scope="module")
def in_a_cluster(world: World) -> Iterator[httpx.Client]:
    """The administrator of a cluster with pods; the database is the same."""
    path = world.directory / "kubernetes.yaml"
    kubernetes = "type: kubernetes\n  max_slots_per_pod: 8"
    path.write_text(CLUSTER.replace("type: process", kubernetes).replace("type: priority", "type: kubernetes"))
    settings = {"cluster_config": str(path)}
    with (
        ApiProcess(
            world.directory / "cluster", database_url=world.database_url, bus_url=world.bus_url, settings=settings
        ) as api,
        api.client() as client,
    ):
        yield client


def test_in_a_cluster_what_runs_gets_another_priority_and_goes_on(
    in_a_cluster: httpx.Client, task: Task, columns_of: Columns
) -> None:
    waits, runs = task("NOTEBOOK"), task("NOTEBOOK", allocation=RUNNING)
    for ident in (waits, runs):
        post(in_a_cluster, f"notebooks/{ident}/set_priority", {"priority": 7})
        columns = columns_of(ident)
        assert (columns["job_priority"], columns["preempt_reason"], columns["kill_reason"]) == (7, None, None)


@pytest.fixture
def notebook(task: Task) -> str:
    return task("NOTEBOOK", allocation=RUNNING)


@pytest.fixture
def itself(api: ApiProcess, world: World, notebook: str) -> Iterator[httpx.Client]:
    """The notebook, with the token of its allocation."""
    token = world.in_database(lambda tx: insert_allocation_session(tx, allocation_id=f"{notebook}.1"))
    headers = {"Grpc-Metadata-x-allocation-token": f"Bearer {token}"}
    with httpx.Client(base_url=api.url, headers=headers, timeout=30) as client:
        yield client


def test_a_notebook_says_whether_it_is_used(
    itself: httpx.Client, notebook: str, columns_of: Columns, task: Task
) -> None:
    path = f"/api/v1/notebooks/{notebook}/report_idle"
    assert itself.put(path, json={"idle": True}).json() == {}
    assert columns_of(notebook)["last_active_at"] is None, "idle is no news"
    assert itself.put(path, json={"idle": False}).json() == {}
    used = columns_of(notebook)["last_active_at"]
    assert datetime.now(UTC) - used < timedelta(minutes=1)
    assert itself.put(path, json={"idle": True}).json() == {}
    assert columns_of(notebook)["last_active_at"] == used
    assert itself.put(path).json() == {}, "without a body it is not idle"
    assert columns_of(notebook)["last_active_at"] > used
    other = task("NOTEBOOK")
    assert refused(itself.put(f"/api/v1/notebooks/{other}/report_idle", json={"idle": False}), 403)
    assert columns_of(other)["last_active_at"] is None


def test_its_registration_counts_as_use(itself: httpx.Client, notebook: str, columns_of: Columns) -> None:
    reply = itself.post(f"/api/v1/allocations/{notebook}.1/proxy_address", json={"proxyAddress": "10.0.0.1"})
    assert reply.status_code == 200, reply.text
    row = columns_of(notebook)
    assert row["proxy_address"] == "10.0.0.1"
    assert datetime.now(UTC) - row["last_active_at"] < timedelta(minutes=1)
