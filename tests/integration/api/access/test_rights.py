"""Who may do what: every cell of the matrix, and lists against what single objects say, over HTTP with real users."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select

from libs.db.engine import Connection
from libs.db.tables.models import models
from libs.db.tables.templates import templates
from libs.db.tables.users import groups, role_assignments, users
from libs.db.tables.webhooks import webhooks
from tests.builders import (
    insert_experiment,
    insert_interactive,
    insert_project,
    insert_trial,
    insert_workspace,
)
from tests.harness.api import ApiProcess
from tests.integration.api.world import CLUSTER, World, two_nodes
from tests.scenarios.rights_matrix import (
    ADMIN,
    CLUSTER_ROLES,
    LOCAL_ROLES,
    NO_ROLE,
    OTHER,
    OWNER,
    RIGHTS,
    Right,
)

pytestmark = pytest.mark.xdist_group("rights")
_nonce = count()


class Persons:
    """Users of one api, each with a client of theirs."""

    def __init__(self, world: World, api: ApiProcess, stack: ExitStack) -> None:
        self.world, self._api, self._stack = world, api, stack
        self._admin = stack.enter_context(api.client())
        self.ids: dict[str, int] = {"admin": 1}
        self.clients: dict[str, httpx.Client] = {"admin": self._admin}

    def add(self, name: str) -> httpx.Client:
        made = self._admin.post("/api/v1/users", json={"user": {"username": name, "active": True}})
        assert made.status_code == 200, made.text
        self.ids[name] = made.json()["user"]["id"]
        self.clients[name] = self._stack.enter_context(self._api.client(name))
        return self.clients[name]

    def give(self, name: str, role_id: int, workspace_id: int | None = None) -> None:
        async def work(connection: Connection) -> None:
            await _give(connection, self.ids[name], role_id, workspace_id)

        self.world.in_database(work)


async def _give(connection: Connection, user_id: int, role_id: int, workspace_id: int | None) -> None:
    group = await connection.scalar(select(groups.c.id).where(groups.c.user_id == user_id))
    values = {"group_id": group, "role_id": role_id, "workspace_id": workspace_id}
    await connection.execute(insert(role_assignments).values(**values))


async def _objects(connection: Connection, owner: int, holder: int | None, role: int) -> dict[str, Any]:
    """A workspace with one of everything; ``holder`` gets the role in it when it is one for workspaces."""
    nonce = next(_nonce)
    workspace = await insert_workspace(connection, name=f"w{nonce}", owner_id=owner)
    project = await insert_project(connection, workspace_id=workspace, name="p", owner_id=owner)
    config = {"name": "e", "labels": [f"label-{nonce}"], "searcher": {"name": "single", "metric": "loss"}}
    experiment = await insert_experiment(
        connection, project_id=project, owner_id=owner, state="COMPLETED", config=config
    )
    trial = await insert_trial(connection, experiment_id=experiment, project_id=project, state="COMPLETED")
    command = await insert_interactive(
        connection,
        job={"workspace_id": workspace, "owner_id": owner},
        task={"workspace_id": workspace, "owner_id": owner},
    )
    await connection.execute(insert(templates).values(name=f"t{nonce}", config={}, workspace_id=workspace))
    model = insert(models).values(name=f"m{nonce}", owner_id=owner, workspace_id=workspace)
    await connection.execute(model)
    webhook = insert(webhooks).values(
        name=f"h{nonce}", url="https://example.org", webhook_type="DEFAULT", mode="WORKSPACE", workspace_id=workspace
    )
    webhook_id = await connection.scalar(webhook.returning(webhooks.c.id))
    if holder is not None and role in LOCAL_ROLES:
        await _give(connection, holder, role, workspace)
    return {
        "workspace": workspace,
        "project": project,
        "experiment": experiment,
        "trial": trial,
        "command": command.removesuffix(".1"),
        "template": f"t{nonce}",
        "model": f"m{nonce}",
        "webhook": webhook_id,
        "agent": "a",
        "nonce": nonce,
    }


def _filled(body: Any, objects: Mapping[str, Any]) -> Any:
    if isinstance(body, str):
        return body.format(**objects)
    return {key: _filled(value, objects) for key, value in body.items()} if isinstance(body, dict) else body


def ask(client: httpx.Client, right: Right, objects: Mapping[str, Any]) -> httpx.Response:
    body = _filled(right.body, objects)
    return client.request(right.method, right.path.format(**objects), **({} if body is None else {"json": body}))


def _api(world: World, kind: str) -> ApiProcess:
    path = world.directory / f"{kind}.yaml"
    path.write_text(f"{CLUSTER}security: {{authz: {{type: {kind}}}}}\n")
    return world.api(kind, cluster_config=str(path))


@pytest.fixture(scope="module")
def basic(world: World) -> Iterator[Persons]:
    world.publish(two_nodes())
    with ExitStack() as stack, _api(world, "basic") as api:
        persons = Persons(world, api, stack)
        for name in ("b-owner", "b-other"):
            persons.add(name)
        yield persons


@pytest.fixture(scope="module")
def rbac(world: World) -> Iterator[Persons]:
    world.publish(two_nodes())
    with ExitStack() as stack, _api(world, "rbac") as api:
        persons = Persons(world, api, stack)
        for role in (NO_ROLE, *LOCAL_ROLES, *CLUSTER_ROLES):
            persons.add(f"role-{role}")
            if role in CLUSTER_ROLES:
                persons.give(f"role-{role}", role)
        yield persons


BASIC = {ADMIN: "admin", OWNER: "b-owner", OTHER: "b-other"}


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: right.action)
def test_basic(basic: Persons, right: Right) -> None:
    for kind, name in BASIC.items():
        objects = basic.world.in_database(lambda c: _objects(c, basic.ids["b-owner"], None, NO_ROLE))
        reply = ask(basic.clients[name], right, objects)
        if kind in right.basic:
            assert reply.status_code not in {401, 403, 404, 500, 501}, (kind, reply.text)
        else:
            assert reply.status_code == 403, (kind, reply.text)


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: right.action)
def test_rbac(rbac: Persons, right: Right) -> None:
    for role in (NO_ROLE, *LOCAL_ROLES, *CLUSTER_ROLES):
        holder = rbac.ids[f"role-{role}"]
        # Owning it counts for nothing.
        objects = rbac.world.in_database(lambda c, h=holder, r=role: _objects(c, h, h, r))
        reply = ask(rbac.clients[f"role-{role}"], right, objects)
        if role in right.rbac:
            assert reply.status_code not in {401, 403, 404, 500, 501}, (role, reply.text)
        elif role in right.seen:
            assert reply.status_code == 403, (role, reply.text)
            assert "access denied; required permissions: PERMISSION_TYPE_" in reply.text
        else:
            assert reply.status_code == 404, (role, reply.text)
            assert reply.json()["error"]["error"].endswith(", please check your permissions.")


def listed(client: httpx.Client) -> dict[str, tuple[set[Any], int]]:
    """What each list shows, and how many it says there are."""

    def get(path: str) -> Any:
        reply = client.get(path)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def post(path: str) -> Any:
        reply = client.post(path, json={"limit": 1000})
        assert reply.status_code == 200, reply.text
        return reply.json()

    workspaces = get("/api/v1/workspaces")
    projects = get("/api/v1/workspaces/0/projects")
    experiments = get("/api/v1/experiments?limit=-1")
    searched = post("/api/v1/experiments-search")
    runs = post("/api/v1/runs")
    commands = get("/api/v1/commands")
    found_templates = get("/api/v1/templates?limit=-1")
    found_models = get("/api/v1/models?limit=-1")
    return {
        "workspace": ({w["id"] for w in workspaces["workspaces"]}, workspaces["pagination"]["total"]),
        "project": ({p["id"] for p in projects["projects"]}, projects["pagination"]["total"]),
        "experiment": ({e["id"] for e in experiments["experiments"]}, experiments["pagination"]["total"]),
        "searched": ({e["experiment"]["id"] for e in searched["experiments"]}, searched["pagination"]["total"]),
        "trial": ({r["id"] for r in runs["runs"]}, runs["pagination"]["total"]),
        "command": ({c["id"] for c in commands["commands"]}, commands["pagination"]["total"]),
        "template": ({t["name"] for t in found_templates["templates"]}, found_templates["pagination"]["total"]),
        "model": ({m["name"] for m in found_models["models"]}, found_models["pagination"]["total"]),
    }


GET = {
    "workspace": "/api/v1/workspaces/{}",
    "project": "/api/v1/projects/{}",
    "experiment": "/api/v1/experiments/{}",
    "searched": "/api/v1/experiments/{}",
    "trial": "/api/v1/trials/{}",
    "command": "/api/v1/commands/{}",
    "template": "/api/v1/templates/{}",
    "model": "/api/v1/models/{}",
}


@pytest.mark.parametrize("seed", range(3))
def test_lists_show_and_count_what_can_be_had_by_id_and_nothing_else(rbac: Persons, seed: int) -> None:
    chosen = random.Random(seed)
    objects = [rbac.world.in_database(lambda c: _objects(c, 1, None, NO_ROLE)) for _ in range(4)]
    name = f"random-{seed}"
    client = rbac.add(name)
    for each in objects:
        for role in chosen.sample(LOCAL_ROLES, chosen.choice((0, 1, 2))):
            rbac.give(name, role, each["workspace"])
    for kind, (shown, total) in listed(client).items():
        assert total == len(shown), kind
        for each in objects:
            ident = each["experiment" if kind == "searched" else kind]
            status = client.get(GET[kind].format(ident)).status_code
            assert status == (200 if ident in shown else 404), (kind, ident, shown)
    labels = set(client.get("/api/v1/experiment/labels").json()["labels"])
    seen = listed(client)["experiment"][0]
    assert labels == {f"label-{each['nonce']}" for each in objects if each["experiment"] in seen}


def test_a_right_that_was_taken_away_is_gone_with_the_next_call(rbac: Persons) -> None:
    client = rbac.add("fickle")
    objects = rbac.world.in_database(lambda c: _objects(c, 1, rbac.ids["fickle"], 4))
    path = f"/api/v1/experiments/{objects['experiment']}"
    assert client.get(path).status_code == 200
    one = {"role": {"roleId": 4}, "scopeWorkspaceId": objects["workspace"]}
    body = {"userRoleAssignments": [{"userId": rbac.ids["fickle"], "roleAssignment": one}]}
    assert client.post("/api/v1/roles/remove-assignments", json=body).status_code == 403
    assert rbac.clients["admin"].post("/api/v1/roles/remove-assignments", json=body).status_code == 200
    assert client.get(path).status_code == 404
    # One that is not there reads the same.
    missing = client.get("/api/v1/experiments/999999").json()["error"]["error"]
    assert missing == "experiment '999999' not found, please check your permissions."


@pytest.mark.parametrize(("role", "shown", "status"), [(NO_ROLE, False, 404), (4, True, 403), (5, True, 200)])
def test_webhooks_of_a_workspace_are_for_roles_in_it(rbac: Persons, role: int, shown: bool, status: int) -> None:
    name = f"role-{role}"
    objects = rbac.world.in_database(lambda c: _objects(c, 1, rbac.ids[name], role))
    client, path = rbac.clients[name], f"/api/v1/webhooks/{objects['webhook']}"
    listed = [each["id"] for each in client.get("/api/v1/webhooks").json()["webhooks"]]
    assert (objects["webhook"] in listed) is shown
    assert client.delete(path).status_code == status


def test_who_makes_a_workspace_administers_it(rbac: Persons) -> None:
    client = rbac.clients["role-3"]
    made = client.post("/api/v1/workspaces", json={"name": "of-its-creator"}).json()["workspace"]
    assert client.get(f"/api/v1/workspaces/{made['id']}").status_code == 200
    assert client.patch(f"/api/v1/workspaces/{made['id']}", json={"name": "renamed"}).status_code == 200


def test_jobs_of_others_are_shown_without_whose_they_are(rbac: Persons) -> None:
    rbac.world.in_database(lambda c: _objects(c, 1, None, NO_ROLE))
    jobs = rbac.clients["role-0"].get("/api/v1/job-queues-v2?resourcePool=cpus").json()["jobs"]
    assert all("full" not in job for job in jobs)


def test_everybody_is_somebody(rbac: Persons, tmp_path: Path) -> None:
    async def work(connection: Connection) -> int:
        query = select(users.c.id).where(~users.c.id.in_(select(groups.c.user_id).where(groups.c.user_id.is_not(None))))
        return len((await connection.execute(query)).all())

    assert rbac.world.in_database(work) == 0
