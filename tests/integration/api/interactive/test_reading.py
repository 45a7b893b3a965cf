"""Notebooks, TensorBoards, shells and commands as clients read them (docs/reference/tasks-and-cli.md 2.7 and 2.8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

from libs.events.observations import Address, ObservedPod
from tests.builders import insert_workspace
from tests.integration.api.interactive.conftest import Task
from tests.integration.api.world import World

KINDS = {"NOTEBOOK": "notebook", "TENSORBOARD": "tensorboard", "SHELL": "shell", "COMMAND": "command"}
NOBODY = "00000000-0000-4000-8000-000000000000"
POD = ObservedPod(name="p", state="RUNNING", node="a", addresses=("10.0.0.1",), devices=("000", "003"))


def get(client: httpx.Client, path: str, **query: Any) -> Any:
    reply = client.get(f"/api/v1/{path}", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def ids(reply: Any, plural: str) -> list[str]:
    return [one["id"] for one in reply[plural]]


@pytest.mark.parametrize("task_type", KINDS)
def test_one_that_waits(admin: httpx.Client, task: Task, task_type: str) -> None:
    noun = KINDS[task_type]
    start = datetime(2030, 1, 1, 12, 0, 0, 120_999, tzinfo=UTC)
    config = {"description": "d", "resources": {"weight": 1.0, "slots": 0}}
    ident = task(task_type, task={"start_time": start}, description="d", config=config)
    reply = get(admin, f"{noun}s/{ident}")
    shown = reply[noun]
    assert reply["config"] == {"description": "d", "resources": {"weight": 1, "slots": 0}}
    assert shown.pop("jobId")
    assert {key: shown[key] for key in ("id", "description", "state", "startTime", "container", "exitStatus")} == {
        "id": ident,
        "description": "d",
        "state": "STATE_QUEUED",
        "startTime": "2030-01-01T12:00:00.120Z",
        "container": None,
        "exitStatus": "",
    }
    assert (shown["userId"], shown["username"], shown["displayName"]) == (2, "determined", "")
    assert (shown["resourcePool"], shown["workspaceId"]) == ("gpus", 1)
    for other in set(KINDS.values()) - {noun}:
        refused = admin.get(f"/api/v1/{other}s/{ident}")
        assert refused.status_code == 404
        assert refused.json()["error"]["error"] == f"{other} '{ident}' not found"


def test_what_only_some_kinds_have(admin: httpx.Client, task: Task) -> None:
    notebook = task("NOTEBOOK")
    address = get(admin, f"notebooks/{notebook}")["notebook"]["serviceAddress"]
    assert address.startswith(f"/proxy/{notebook}/?token=1.{notebook}."), "of whoever asks"
    board = task("TENSORBOARD", experiment_ids=[3, 5], trial_ids=[8])
    shown = get(admin, f"tensorboards/{board}")["tensorboard"]
    assert (shown["serviceAddress"], shown["experimentIds"], shown["trialIds"]) == (f"/proxy/{board}/", [3, 5], [8])


def test_a_shell_says_how_to_log_in(admin: httpx.Client, task: Task, world: World) -> None:
    ports = {"proxy_ports": [{"service_id": "s", "port": 3201, "proxy_tcp": True}]}
    running = {"state": "RUNNING", "pods": msgspec.to_builtins([POD])}
    ident = task("SHELL", private_key="-----", public_key="ssh-ed25519", task={"spec": ports}, allocation=running)
    shown = get(admin, f"shells/{ident}")["shell"]
    assert (shown["privateKey"], shown["publicKey"]) == ("-----", "ssh-ed25519")
    place = {"container_ip": "10.0.0.1", "container_port": 3201, "host_ip": "10.0.0.1", "host_port": 3201}
    assert shown["addresses"] == [place]
    root = {"id": 0, "user_id": 0, "user": "root", "uid": 0, "group": "root", "gid": 0}
    assert shown["agentUserGroup"] == root

    workspace = world.in_database(lambda tx: insert_workspace(tx, name="with users", agent_uid=7, agent_user="seven"))
    at_gateway = Address(container_ip="1.2.3.4", container_port=3201, host_ip="1.2.3.4", host_port=40000)
    pods = msgspec.to_builtins([msgspec.structs.replace(POD, proxied=(at_gateway,))])
    other = task("SHELL", task={"spec": ports, "workspace_id": workspace}, allocation={"pods": pods})
    shown = get(admin, f"shells/{other}")["shell"]
    assert shown["agentUserGroup"] == {**root, "user": "seven", "uid": 7}
    assert shown["addresses"] == [{**place, "container_ip": "1.2.3.4", "host_ip": "1.2.3.4", "host_port": 40000}]


@pytest.mark.parametrize(
    ("columns", "state", "container", "exit_status"),
    [
        ({"state": "ASSIGNED", "assigned_at": "now"}, "QUEUED", None, ""),
        ({"state": "PULLING", "pods": [POD]}, "PULLING", "PULLING", ""),
        ({"state": "WAITING", "pods": [POD]}, "WAITING", "RUNNING", ""),
        ({"state": "TERMINATING", "pods": [POD], "exit_error": "early"}, "TERMINATING", "RUNNING", ""),
        (
            {"state": "TERMINATED", "pods": [POD], "assigned_at": "now"},
            "TERMINATED",
            "TERMINATED",
            "allocation exited successfully",
        ),
        ({"state": "TERMINATED", "exit_error": "because (exit code 1)"}, "TERMINATED", None, "because (exit code 1)"),
        ({"state": "TERMINATED"}, "TERMINATED", None, "task was aborted before the task was started"),
    ],
)
def test_states(
    admin: httpx.Client, task: Task, columns: dict[str, Any], state: str, container: str | None, exit_status: str
) -> None:
    row = {**columns, "pods": msgspec.to_builtins(columns.get("pods", []))}
    if "assigned_at" in row:
        row["assigned_at"] = datetime.now(UTC)
    shown = get(admin, f"commands/{task('COMMAND', allocation=row)}")["command"]
    assert (shown["state"], shown["exitStatus"]) == (f"STATE_{state}", exit_status)
    if container is None:
        assert shown["container"] is None
    else:
        assert shown["container"]["state"] == f"STATE_{container}"
        assert shown["container"]["id"] == f"{shown['id']}.1"
        assert [device["id"] for device in shown["container"]["devices"]] == [0, 3]


@pytest.fixture(scope="module")
def listed(world: World) -> int:
    """A workspace of its own for the tests of lists."""
    found: int = world.in_database(lambda tx: insert_workspace(tx, name="listed"))
    return found


def test_lists_are_filtered_sorted_and_cut(admin: httpx.Client, task: Task, listed: int) -> None:
    base = datetime.now(UTC)

    def command(ident: str, description: str, owner: int, minutes: int, **more: Any) -> str:
        columns = {"task_id": ident, "owner_id": owner, "start_time": base + timedelta(minutes=minutes), **more}
        return task("COMMAND", description=description, task={"workspace_id": listed, **columns})

    a = command("a0", "b", 1, 3)
    b = command("b0", "B", 2, 1)
    c = command("c0", "a", 2, 2)
    command("d0", "old", 2, 0, end_time=base - timedelta(hours=25))
    e = command("e0", "a", 1, 2, end_time=base - timedelta(hours=23))
    mine = {"workspaceId": listed}

    def those(**query: Any) -> list[str]:
        return ids(get(admin, "commands", **mine, **query), "commands")

    assert those() == [a, b, c, e], "those that ended long ago are not listed"
    assert those(orderBy="ORDER_BY_DESC") == [e, c, b, a]
    assert those(sortBy="SORT_BY_DESCRIPTION") == [c, e, b, a], "in natural order, then by id"
    assert those(sortBy="SORT_BY_START_TIME") == [b, c, e, a]
    assert those(sortBy="SORT_BY_START_TIME", orderBy="ORDER_BY_DESC") == [a, e, c, b]
    assert those(sortBy="SORT_BY_WORKSPACE_ID") == [a, b, c, e]
    assert those(users="determined") == [b, c]
    assert those(userIds=1) == [a, e]
    assert those(users=["determined"], userIds=[1]) == [a, b, c, e], "either of them"
    assert those(users="nobody") == []
    assert those(offset=1, limit=2) == [b, c]
    assert those(offset=-1) == [e]
    page = get(admin, "commands", **mine, offset=1, limit=2)["pagination"]
    assert page == {"offset": 1, "limit": 2, "startIndex": 1, "endIndex": 3, "total": 4}
    beyond = admin.get("/api/v1/commands", params={**mine, "offset": 5})
    assert (beyond.status_code, beyond.json()["error"]["error"]) == (400, "offset out of bounds")
    assert get(admin, "shells", **mine)["shells"] == []
    assert {a, b, c, e} <= set(ids(get(admin, "commands"), "commands")), "of all workspaces"
    assert get(admin, "commands/d0")["command"]["id"] == "d0", "its log is still there to be read"


def test_ended_tasks_of_a_workspace_leave_the_lists_with_its_deletion(admin: httpx.Client, task: Task) -> None:
    made = admin.post("/api/v1/workspaces", json={"name": "doomed"}).json()["workspace"]["id"]
    ended = task("COMMAND", task={"workspace_id": made, "end_time": datetime.now(UTC)})
    live = task("COMMAND", task={"workspace_id": made})
    assert {ended, live} <= set(ids(get(admin, "commands"), "commands"))
    assert admin.delete(f"/api/v1/workspaces/{made}").status_code == 200
    listed = ids(get(admin, "commands"), "commands")
    assert ended not in listed
    assert live in listed, "it is still running"


@pytest.mark.parametrize("plural", ["notebooks", "tensorboards", "shells", "commands"])
def test_what_does_not_exist(admin: httpx.Client, plural: str) -> None:
    refused = admin.get(f"/api/v1/{plural}", params={"workspaceId": 4711})
    assert (refused.status_code, refused.json()["error"]["error"]) == (404, "workspace '4711' not found")
    noun = plural[:-1]
    calls = [("GET", ""), ("POST", "/kill"), ("POST", "/set_priority")]
    for method, rest in calls + ([("PUT", "/report_idle")] if noun == "notebook" else []):
        refused = admin.request(method, f"/api/v1/{plural}/{NOBODY}{rest}", json={"priority": 5} if rest else None)
        assert refused.status_code == 404, refused.text
        assert refused.json()["error"]["error"] == f"{noun} '{NOBODY}' not found"


def test_credentials_are_shown_to_their_owner_only(admin: httpx.Client, user: httpx.Client, task: Task) -> None:
    config = {"environment": {"registry_auth": {"username": "me", "password": "hidden-from-others"}}}
    ident = task("COMMAND", config=config)
    assert get(user, f"commands/{ident}")["config"] == config
    assert "hidden-from-others" not in str(get(admin, f"commands/{ident}"))


def test_running_ones_are_counted(admin: httpx.Client, task: Task) -> None:
    before = get(admin, "tasks/count")
    assert set(before) == {"commands", "notebooks", "shells", "tensorboards"}
    for task_type in KINDS:
        task(task_type, allocation={"state": "RUNNING"})
        task(task_type)
        task(task_type, allocation={"state": "TERMINATED", "released_at": datetime.now(UTC)})
    assert get(admin, "tasks/count") == {plural: number + 1 for plural, number in before.items()}
