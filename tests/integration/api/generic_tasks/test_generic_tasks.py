"""Creating generic tasks, forks and trees of them, and what clients are told (docs/reference/tasks-and-cli.md 6)."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from libs.ids import new_uuid
from tests.builders import insert_generic_task, insert_notebook
from tests.harness.api import ApiProcess
from tests.harness.waiting import wait_until
from tests.integration.api.world import World, two_nodes

CONFIG = "entrypoint: [sh, -c, echo hello]\nresources: {slots: 0}\n"
HELLO = {"path": "hello.txt", "type": 48, "content": base64.b64encode(b"hello").decode(), "mtime": "0", "mode": 0o644}


def create(client: httpx.Client, config: str = CONFIG, **more: Any) -> str:
    reply = client.post("/api/v1/generic-tasks", json={"config": config, "contextDirectory": [], **more})
    assert reply.status_code == 200, reply.text
    assert reply.json()["warnings"] == []
    return str(reply.json()["taskId"])


def refusal(client: httpx.Client, path: str, body: Any = None) -> tuple[int, str]:
    reply = client.post(path, json=body)
    return reply.status_code, reply.json()["error"]["error"]


def task(client: httpx.Client, ident: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v1/tasks/{ident}").json()["task"]
    return found


def config_of(client: httpx.Client, ident: str) -> Any:
    return json.loads(client.get(f"/api/v1/tasks/{ident}/config").json()["config"])


def files_of(client: httpx.Client, ident: str) -> dict[str, bytes]:
    packed = base64.b64decode(client.get(f"/api/v1/tasks/{ident}/context_directory").json()["b64Tgz"])
    if not packed:
        return {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        opened = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: file.read() for name, file in opened.items() if file is not None}


def insert(world: World, **columns: Any) -> str:
    return str(world.in_database(lambda connection: insert_generic_task(connection, **columns)))


def test_created_task_waits_for_its_first_run(admin: httpx.Client, world: World) -> None:
    ident = create(admin, CONFIG + "preemption_timeout: 5\n", noPause=True)
    found = task(admin, ident)
    assert found["taskType"] == "TASK_TYPE_GENERIC"
    assert (found["taskState"], found["noPause"]) == ("GENERIC_TASK_STATE_ACTIVE", True)
    assert not {"parentId", "forkedFrom", "endTime"} & found.keys()
    assert [(each["allocationId"], each["state"]) for each in found["allocations"]] == [(f"{ident}.1", "STATE_QUEUED")]
    wanted = {"entrypoint": ["sh", "-c", "echo hello"], "resources": {"slots": 0}, "preemption_timeout": 5}
    assert json.loads(found["config"]) == config_of(admin, ident) == wanted

    async def row(connection: Any) -> Any:
        query = text("SELECT name, pool, slots, num_pods, preemptible, preemption_timeout_s FROM allocations")
        return (await connection.execute(text(f"{query.text} WHERE task_id = :t"), {"t": ident})).one()

    assert tuple(world.in_database(row)) == (f"Generic Task {ident}", "cpus", 0, 1, False, 5)
    jobs = admin.get("/api/v1/job-queues-v2", params={"resourcePool": "cpus"}).json()["jobs"]
    [job] = [job["full"] for job in jobs if job["full"]["entityId"] == ident]
    assert (job["type"], job["name"], job["isPreemptible"]) == ("TYPE_GENERIC", "generic-task", False)
    summary = admin.get("/api/v1/tasks").json()["allocationIdToSummary"][f"{ident}.1"]
    assert summary["name"] == f"Generic Task {ident}"


def test_fork_begins_with_the_configuration_and_the_files_of_another(admin: httpx.Client) -> None:
    first = create(admin, CONFIG + "debug: true\n", contextDirectory=[HELLO])
    assert files_of(admin, first) == {"hello.txt": b"hello"}
    fork = create(admin, "", forkedFrom=first)
    assert task(admin, fork)["forkedFrom"] == first
    assert (config_of(admin, fork), files_of(admin, fork)) == (config_of(admin, first), files_of(admin, first))
    other = {**HELLO, "path": "other.txt"}
    changed = create(admin, "resources: {slots: 0, weight: 3}\n", forkedFrom=first, contextDirectory=[other])
    assert config_of(admin, changed) == {**config_of(admin, first), "resources": {"slots": 0, "weight": 3}}
    assert files_of(admin, changed) == {"other.txt": b"hello"}
    assert "noPause" not in task(admin, fork)


def test_child_inherits_the_files_of_its_parent_when_it_asks_for_them(admin: httpx.Client) -> None:
    parent = create(admin, contextDirectory=[HELLO])
    heir = create(admin, parentId=parent, inheritContext=True, noPause=False)
    assert files_of(admin, heir) == {"hello.txt": b"hello"}
    found = task(admin, heir)
    assert (found["parentId"], found["noPause"]) == (parent, False)
    assert files_of(admin, create(admin, parentId=parent)) == {}


def test_secrets_are_for_their_owner(admin: httpx.Client, user: httpx.Client) -> None:
    secret = CONFIG + "environment: {registry_auth: {username: me, password: swordfish}}\n"
    ident = create(admin, secret)
    assert config_of(admin, ident)["environment"]["registry_auth"]["password"] == "swordfish"
    assert config_of(user, ident)["environment"]["registry_auth"] == {"username": "me", "password": "********"}
    assert "swordfish" not in user.get(f"/api/v1/tasks/{ident}").text
    create(admin, "", forkedFrom=ident)
    status, says = refusal(user, "/api/v1/generic-tasks", {"config": "", "forkedFrom": ident})
    assert (status, "registry_auth.password: ******** hides a secret" in says) == (400, True)
    create(user, "environment: {}\n", forkedFrom=ident)


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({}, 400, "No config file nor forked task provided"),
    ({"config": "a: ["}, 400, "invalid YAML: "),
    ({"config": "entrypoint: [a]\nx: 1"}, 400, 'yaml unmarshaling generic task config: json: unknown field "x"'),
    ({"config": "{}"}, 400, "invalid generic task config: Check Failed! 1 errors found"),
    ({"config": CONFIG, "inheritContext": True}, 400, "could not inherit config directory since no parent task id"),
    ({"config": CONFIG, "projectId": 4711}, 404, "project '4711' not found"),
    ({"config": "entrypoint: [a]\nresources: {resource_pool: none}"}, 400, "resource pool none does not exist"),
    ({"config": CONFIG + "work_dir: /tmp", "contextDirectory": [HELLO]}, 400, "cannot set work_dir and context"),
    ({"config": CONFIG, "contextDirectory": [{**HELLO, "path": "../up"}]}, 400, "'../up'"),
    ({"config": 'entrypoint: ["\\0"]'}, 400, "NUL"),
]


@pytest.mark.parametrize(("body", "status", "says"), REFUSED)
def test_bad_requests_leave_nothing_behind(
    admin: httpx.Client, world: World, body: dict[str, Any], status: int, says: str
) -> None:
    async def count(connection: Any) -> int:
        return int((await connection.execute(text("SELECT count(*) FROM jobs"))).scalar_one())

    before = world.in_database(count)
    found = refusal(admin, "/api/v1/generic-tasks", body)
    assert (found[0], says in found[1]) == (status, True), found
    assert world.in_database(count) == before


@pytest.mark.parametrize("what", ["kill", "pause", "unpause", "config", "fork", "child"])
def test_unknown_tasks_and_those_of_other_types(admin: httpx.Client, world: World, what: str) -> None:
    notebook = world.in_database(lambda connection: insert_notebook(connection, job={"pool": "gpus"}))
    other, unknown = notebook.rpartition(".")[0], new_uuid()

    def ask(ident: str) -> tuple[int, str]:
        if what == "config":
            reply = admin.get(f"/api/v1/tasks/{ident}/config")
            return reply.status_code, reply.json()["error"]["error"]
        if what in ("fork", "child"):
            field = "forkedFrom" if what == "fork" else "parentId"
            return refusal(admin, "/api/v1/generic-tasks", {"config": CONFIG, field: ident})
        return refusal(admin, f"/api/v1/tasks/{ident}/{what}", {"taskId": ident} if what == "kill" else None)

    assert ask(unknown) == (404, f"task '{unknown}' not found")
    assert ask(other) == (400, f"task {other} is of another type (make sure task is of type GENERIC)")


def test_states_that_do_not_allow_it_are_named(admin: httpx.Client, world: World) -> None:
    done, paused, active = insert(world, state="COMPLETED"), insert(world, state="PAUSED"), insert(world, no_pause=True)

    def ask(ident: str, what: str, body: Any = None) -> tuple[int, str]:
        return refusal(admin, f"/api/v1/tasks/{ident}/{what}", body)

    assert ask(done, "kill", {"taskId": done}) == (400, f"cannot cancel task {done} as it is in state 'COMPLETED'")
    assert ask(done, "pause") == (400, f"cannot pause task {done} as it is in state 'COMPLETED'")
    assert ask(paused, "pause") == (400, f"cannot pause task {paused} as it is in state 'PAUSED'")
    assert ask(active, "pause") == (400, f"cannot pause task {active} with `no_pause` set to true")
    assert ask(active, "unpause") == (400, f"cannot unpause task {active} as it is not in paused state")
    mismatch = f"taskId '{done}' is not the task of the path, '{active}'"
    assert ask(active, "kill", {"taskId": done}) == (400, mismatch)


def test_pause_and_unpause_show_in_the_task_at_once(admin: httpx.Client, world: World) -> None:
    ident = insert(world)
    assert admin.post(f"/api/v1/tasks/{ident}/pause").json() == {}
    assert task(admin, ident)["taskState"] == "GENERIC_TASK_STATE_STOPPING_PAUSED"
    assert admin.post(f"/api/v1/tasks/{ident}/unpause").json() == {}
    assert task(admin, ident)["taskState"] == "GENERIC_TASK_STATE_ACTIVE"


def test_what_was_killed_gets_no_children(admin: httpx.Client) -> None:
    root = create(admin)
    child = create(admin, parentId=root)
    assert admin.post(f"/api/v1/tasks/{child}/kill", json={"taskId": child, "killFromRoot": True}).json() == {}
    for ident in (root, child):
        assert task(admin, ident)["taskState"] == "GENERIC_TASK_STATE_STOPPING_CANCELED"
    status, says = refusal(admin, "/api/v1/generic-tasks", {"config": CONFIG, "parentId": child})
    assert (status, says) == (400, f"cannot create a task below task {child} as it is in state 'STOPPING_CANCELED'")


def test_several_nodes_only_when_it_says_so(admin: httpx.Client, api: ApiProcess, world: World) -> None:
    world.publish(two_nodes())
    path = "/api/v1/generic-tasks"
    config = "entrypoint: [a]\nresources: {slots: 6, resource_pool: gpus}\n"

    def is_refused() -> bool:
        reply = admin.post(path, json={"config": config})
        return reply.status_code == 400 and "request unfulfillable" in reply.text

    wait_until(is_refused, what="the api has seen the nodes")
    spread = "entrypoint: [a]\nresources: {slots: 4, resource_pool: gpus, is_single_node: false}\n"
    assert len(task(admin, create(admin, spread))["allocations"]) == 1


def test_it_is_created_in_the_workspace_of_its_project(admin: httpx.Client, world: World) -> None:
    workspace = admin.post("/api/v1/workspaces", json={"name": f"ws-{new_uuid()[:8]}"}).json()["workspace"]["id"]
    body = {"name": "p", "workspaceId": workspace}
    project = admin.post(f"/api/v1/workspaces/{workspace}/projects", json=body).json()["project"]["id"]
    ident = create(admin, projectId=project)

    async def of_task(connection: Any) -> Any:
        query = text("SELECT t.workspace_id, j.workspace_id FROM tasks t JOIN jobs j USING (job_id) WHERE task_id = :t")
        return tuple((await connection.execute(query, {"t": ident})).one())

    assert world.in_database(of_task) == (workspace, workspace)
    admin.post(f"/api/v1/workspaces/{workspace}/archive")
    status, says = refusal(admin, "/api/v1/generic-tasks", {"config": CONFIG, "projectId": project})
    assert (status, "is archived" in says) == (400, True)


def test_a_child_that_is_started_while_its_tree_is_killed_is_killed_too_or_not_started(
    admin: httpx.Client, world: World
) -> None:
    """However the two meet: nothing runs on that nobody knows of."""

    def start() -> bool:
        body = {"config": CONFIG, "parentId": child}
        return admin.post("/api/v1/generic-tasks", json=body).status_code == 200

    async def states(connection: Any) -> list[str]:
        query = text("SELECT DISTINCT state FROM generic_tasks WHERE root_id = :root")
        return list((await connection.execute(query, {"root": root})).scalars())

    started = 0
    for round_ in range(8):
        root = create(admin)
        child = create(admin, parentId=root)
        with ThreadPoolExecutor(4) as pool:
            starting = [pool.submit(start) for _ in range(3)]
            for one in starting[: round_ % 3]:
                one.result()
            killing = pool.submit(admin.post, f"/api/v1/tasks/{root}/kill", json={"taskId": root})
            started += sum(one.result() for one in starting)
            killing.result().raise_for_status()
        assert world.in_database(states) == ["STOPPING_CANCELED"]
    assert started
