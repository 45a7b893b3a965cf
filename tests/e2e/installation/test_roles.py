"""What a Viewer, a stranger and the page of a task get at through tasks of others, which run in pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from tests.harness.installation import Installation
from tests.harness.waiting import wait_until
from tests.programs import DIRECTORY

pytestmark = [pytest.mark.installation, pytest.mark.timeout(600)]

Json = dict[str, Any]

VIEWER, EDITOR = 4, 5
ROLES: Final = {"viewer": VIEWER, "editor": EDITOR, "nobody": None}
POOL: Final = "here"
PORT: Final = 8000
NAVIGATION: Final = {"User-Agent": "Mozilla/5.0", "Accept": "text/html,*/*", "Sec-Fetch-Mode": "navigate"}
SCRIPT: Final = {"User-Agent": "Mozilla/5.0", "Accept": "*/*", "Sec-Fetch-Mode": "cors"}
UPGRADE: Final = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@dataclass(frozen=True)
class Persons:
    """Clients of an installation with roles, and under which names browsers find it."""

    url: str
    admin: httpx.Client
    viewer: httpx.Client
    editor: httpx.Client
    nobody: httpx.Client
    main: str
    tasks: str

    def token(self, name: str) -> str:
        found: str = getattr(self, name).headers["Authorization"].removeprefix("Bearer ")
        return found


@pytest.fixture(scope="module")
def persons(installation: Installation) -> Iterator[Persons]:
    port = urlsplit(installation.url).port
    main, tasks = f"det.test:{port}", f"tasks.det.test:{port}"
    installation.upgrade(
        *("--set", "security.authz.type=rbac"),
        *("--set", f"tasks.address=http://{tasks},tasks.mainAddress=http://{main}"),
    )
    admin = installation.http("admin")
    clients = {name: _person(installation, admin, name, role) for name, role in ROLES.items()}
    try:
        yield Persons(installation.url, admin, **clients, main=main, tasks=tasks)
    finally:
        for client in (admin, *clients.values()):
            client.close()
        installation.upgrade()


def _person(installation: Installation, admin: httpx.Client, name: str, role: int | None) -> httpx.Client:
    """Somebody with a role in the first workspace, logged in."""
    user = {"username": name, "active": True}
    body = {"user": user, "password": installation.password, "isHashed": False}
    made = admin.post("/api/v1/users", json=body).raise_for_status().json()["user"]
    if role is not None:
        assignment = {"role": {"roleId": role}, "scopeWorkspaceId": 1}
        given = {"userRoleAssignments": [{"userId": made["id"], "roleAssignment": assignment}]}
        admin.post("/api/v1/roles/add-assignments", json=given).raise_for_status()
    return installation.http(name)


@pytest.fixture(scope="module")
def shell(persons: Persons) -> str:
    body = {"config": {"resources": {"resource_pool": POOL, "slots": 0}}, "workspaceId": 1}
    made: Json = persons.admin.post("/api/v1/shells", json=body).raise_for_status().json()["shell"]
    _wait_until_running(persons, made["id"])
    return str(made["id"])


@pytest.fixture(scope="module")
def page(persons: Persons) -> str:
    """The service of a task of the administrator that serves a hostile page."""
    config = {
        "entrypoint": ["python3", "-c", (DIRECTORY / "hostile_page.py").read_text()],
        "resources": {"resource_pool": POOL, "slots": 0},
        "environment": {"proxy_ports": [{"proxy_port": PORT, "proxy_tcp": False, "unauthenticated": False}]},
    }
    body = {"config": config, "workspaceId": 1}
    made: Json = persons.admin.post("/api/v1/commands", json=body).raise_for_status().json()["command"]
    service = f"{made['id']}:{PORT}"
    wait_until(
        lambda: persons.admin.get(f"/proxy/{service}/").status_code == 200,
        timeout_s=90,
        every_s=0.5,
        what="the page of a task",
    )
    return service


def _wait_until_running(persons: Persons, task: str) -> None:
    def looked() -> bool:
        found: Json = persons.admin.get(f"/api/v1/tasks/{task}").raise_for_status().json()["task"]
        assert found.get("endTime") is None
        return any(each.get("isReady") for each in found["allocations"])

    wait_until(looked, timeout_s=90, every_s=0.5, what=f"{task} is ready")


def test_a_viewer_is_not_shown_the_key_of_a_shell(persons: Persons, shell: str) -> None:
    def key(client: httpx.Client) -> str:
        return str(client.get(f"/api/v1/shells/{shell}").raise_for_status().json()["shell"]["privateKey"])

    assert key(persons.viewer) == ""
    assert "PRIVATE KEY" in key(persons.admin)
    assert "PRIVATE KEY" in key(persons.editor)
    assert persons.nobody.get(f"/api/v1/shells/{shell}").status_code == 404


def test_a_shell_is_not_there_for_those_who_may_not_see_it(persons: Persons, shell: str) -> None:
    for headers in ({}, UPGRADE):
        hidden = persons.nobody.get(f"/proxy/{shell}/", headers=headers)
        missing = persons.nobody.get("/proxy/00000000-0000-4000-8000-000000000000/", headers=headers)
        assert hidden.status_code == missing.status_code == 404


def test_a_page_is_for_those_who_may_see_its_task(persons: Persons, page: str) -> None:
    statuses = {
        name: getattr(persons, name).get(f"/proxy/{page}/").status_code
        for name in ("admin", "editor", "viewer", "nobody")
    }
    assert statuses == {"admin": 200, "editor": 200, "viewer": 200, "nobody": 404}
    assert httpx.get(f"{persons.url}/proxy/{page}/", timeout=30).status_code == 401


def test_a_page_gets_nothing_of_whoever_looks_at_it(persons: Persons, page: str) -> None:
    login = persons.token("admin")
    with httpx.Client(base_url=persons.url, timeout=30) as browser:
        of_login = {"Cookie": f"auth={login}"}
        sent = browser.get(f"/proxy/{page}/", headers={**NAVIGATION, **of_login, "Host": persons.main})
        assert sent.status_code == 303, sent.text
        ticket = urlsplit(sent.headers["location"])
        assert ticket.netloc == persons.tasks
        at_tasks = {**NAVIGATION, "Host": persons.tasks}
        entered = browser.get(f"{ticket.path}?{ticket.query}", headers=at_tasks)
        entry = SimpleCookie(entered.headers["set-cookie"])["proxy_token"]
        browser.cookies.clear()
        shown = browser.get(f"/proxy/{page}/", headers={**at_tasks, "Cookie": f"proxy_token={entry.value}"})
        assert shown.status_code == 200, shown.text
        # Neither the login nor what stands for it comes to the program.
        assert login not in shown.text
        assert entry.value not in shown.text
        cookies = [SimpleCookie(each) for each in shown.headers.get_list("set-cookie")]
        assert [list(each) for each in cookies] == [["theme"]]
        assert (cookies[0]["theme"]["path"], cookies[0]["theme"]["domain"]) == (f"/proxy/{page}/", "")
        # What its scripts may try.
        browser.cookies.clear()
        user = {"user": {"username": "of-the-page", "active": True, "admin": True}}
        for origin in ({"Origin": f"http://{persons.tasks}"}, {"Sec-Fetch-Site": "same-site"}, {}):
            headers = {**SCRIPT, **of_login, **origin, "Host": persons.main}
            assert browser.post("/api/v1/users", json=user, headers=headers).status_code == 403, origin
        same = {**SCRIPT, "Sec-Fetch-Site": "same-origin", "Host": persons.tasks}
        for credentials in (of_login, {"Cookie": f"proxy_token={entry.value}"}):
            assert browser.get("/api/v1/me", headers={**same, **credentials}).status_code in {404, 501}
    names = [each["username"] for each in persons.admin.get("/api/v1/users").raise_for_status().json()["users"]]
    assert "of-the-page" not in names
