"""Who gets into shells and notebooks under roles: those who may control them, and nobody who may only look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from sqlalchemy import delete

from libs.db.engine import Connection
from libs.db.tables.users import role_assignments
from libs.ids import new_uuid
from tests.builders import insert_interactive, insert_workspace
from tests.integration.api.access.persons import Persons, api_with
from tests.integration.api.world import World

VIEWER, EDITOR = 4, 5
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@pytest.fixture(scope="module")
def rbac(world: World) -> Iterator[Persons]:
    with ExitStack() as stack, api_with(world, "rbac") as api:
        persons = Persons(world, api, stack)
        for name in ("viewer", "editor", "nobody"):
            persons.add(name)
        yield persons


@pytest.fixture(scope="module")
def workspace(rbac: Persons) -> int:
    found: int = rbac.world.in_database(lambda tx: insert_workspace(tx, name="entered"))
    rbac.give("viewer", VIEWER, found)
    rbac.give("editor", EDITOR, found)
    return found


def insert_task_of_admin(rbac: Persons, workspace: int, task_type: str) -> str:
    ident = new_uuid()
    is_shell = task_type == "SHELL"
    ports = [{"service_id": ident, "port": 1, "proxy_tcp": is_shell, "unauthenticated": is_shell}]
    spec = {"description": "of admin", "proxy_ports": ports}
    task = {"task_id": ident, "workspace_id": workspace, "owner_id": 1, "spec": spec}

    async def insert(connection: Connection) -> None:
        await insert_interactive(
            connection, task_type=task_type, job={"owner_id": 1}, task=task, private_key="the key" if is_shell else None
        )

    rbac.world.in_database(insert)
    return ident


def test_the_key_of_a_shell_is_for_those_who_may_open_it(rbac: Persons, workspace: int) -> None:
    shell = insert_task_of_admin(rbac, workspace, "SHELL")
    for name, key in (("viewer", ""), ("editor", "the key"), ("admin", "the key")):
        shown = rbac.clients[name].get(f"/api/v1/shells/{shell}").json()["shell"]
        listed = rbac.clients[name].get("/api/v1/shells").json()["shells"]
        assert (shown["privateKey"], [each["privateKey"] for each in listed]) == (key, [key]), name
    assert rbac.clients["nobody"].get(f"/api/v1/shells/{shell}").status_code == 404


def test_a_tcp_service_is_not_found_by_those_who_may_not_see_it(rbac: Persons, workspace: int) -> None:
    shell = insert_task_of_admin(rbac, workspace, "SHELL")
    for headers in ({}, UPGRADE):
        refused = rbac.clients["nobody"].get(f"/proxy/{shell}/", headers=headers)
        assert (refused.status_code, refused.json()) == (404, {"message": f"service '{shell}' not found"})
        # It runs nowhere.
        assert rbac.clients["viewer"].get(f"/proxy/{shell}/", headers=headers).status_code in (400, 502)


def test_the_link_of_a_notebook_is_for_those_who_may_open_it_and_as_long_as_they_may(
    rbac: Persons, workspace: int
) -> None:
    notebook = insert_task_of_admin(rbac, workspace, "NOTEBOOK")

    def link(name: str) -> str:
        address: str = rbac.clients[name].get(f"/api/v1/notebooks/{notebook}").json()["notebook"]["serviceAddress"]
        return address

    def opens(address: str) -> int:
        return httpx.get(f"{rbac.clients['admin'].base_url}".rstrip("/") + address, timeout=30).status_code

    assert link("viewer") == f"/proxy/{notebook}/"
    assert rbac.clients["viewer"].get(f"/proxy/{notebook}/").status_code == 403
    of_editor = link("editor")
    assert of_editor.startswith(f"/proxy/{notebook}/?token={rbac.ids['editor']}.")
    assert opens(of_editor) == 502, "let through to a task that runs nowhere"
    assert opens(link("admin")) == 502

    rbac.add("leaving")
    rbac.give("leaving", EDITOR, workspace)
    of_leaving = link("leaving")
    assert opens(of_leaving) == 502
    rbac.world.in_database(
        lambda tx: tx.execute(delete(role_assignments).where(role_assignments.c.workspace_id == workspace))
    )
    assert opens(of_leaving) == 404
    rbac.give("leaving", VIEWER, workspace)
    assert opens(of_leaving) == 403
