"""Who may do what: every cell of the matrix, over HTTP with real users."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select

from libs.db.engine import Connection
from libs.db.tables.models import models
from libs.db.tables.templates import templates
from libs.db.tables.users import groups, user_sessions, users
from libs.db.tables.webhooks import webhooks
from libs.ids import new_uuid
from tests.builders import (
    insert_checkpoint,
    insert_experiment,
    insert_generic_task,
    insert_interactive,
    insert_project,
    insert_trial,
    insert_workspace,
)
from tests.integration.api.access.persons import Persons, api_with, give
from tests.integration.api.world import World, two_nodes
from tests.scenarios.rights_matrix import (
    ADMIN,
    ADMINS,
    CLUSTER_ROLES,
    LOCAL_ROLES,
    NO_ROLE,
    OTHER,
    OWNER,
    PARENT,
    RIGHTS,
    Right,
)
from tests.scenarios.rights_of_many import ACTIONS, HIDDEN, MINE, MISSING, SHOWN, OfMany
from tests.scenarios.search.nodes import field, group

pytestmark = pytest.mark.xdist_group("rights")
VIEWER, EDITOR = 4, 5
FOR_ADMINISTRATORS = ("only admin privileged users can", "an administrator can", "user does not have permission")
FAR = datetime(2099, 1, 1, tzinfo=UTC)
_nonce = count()


async def _named(
    connection: Connection, right: Right, owner: int, holder: int | None, role: int, *, parent: int | None = None
) -> dict[str, Any]:
    """What the row names: making everything takes longer than asking for it."""
    named = f"{right.path} {json.dumps(right.body)}"
    names = set(re.findall(r"{(\w+)}", named))
    if names - {"agent", "nonce", "token", "others_token", "user"} or "w{nonce}" in named:
        return await _objects(connection, owner, holder, role, parent=parent)
    nonce = next(_nonce)
    return {"agent": "a", "nonce": nonce, **(await _tokens(connection, nonce, owner) if names else {})}


async def _objects(
    connection: Connection, owner: int, holder: int | None, role: int, *, parent: int | None = None
) -> dict[str, Any]:
    """A workspace with one of everything; ``holder`` gets the role in it when it is one for workspaces.

    parent  who owns the workspace; None is the owner of all that is in it
    """
    nonce = next(_nonce)
    workspace = await insert_workspace(connection, name=f"w{nonce}", owner_id=owner if parent is None else parent)
    project = await insert_project(connection, workspace_id=workspace, name="p", owner_id=owner)
    config = {"name": f"e{nonce}", "searcher": {"name": "single", "metric": "loss"}}
    experiment = await insert_experiment(
        connection, project_id=project, owner_id=owner, state="COMPLETED", config=config
    )
    trial = await insert_trial(connection, experiment_id=experiment, project_id=project, state="COMPLETED")
    command = await insert_interactive(
        connection,
        job={"workspace_id": workspace, "owner_id": owner, "pool": "cpus"},
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
        await give(connection, holder, role, workspace)
    return {
        "workspace": workspace,
        "project": project,
        "sibling": await insert_project(connection, workspace_id=workspace, name="sibling", owner_id=owner),
        "experiment": experiment,
        "trial": trial,
        "command": command.removesuffix(".1"),
        "checkpoint": await insert_checkpoint(connection, trial_id=trial, experiment_id=experiment),
        "generic": await insert_generic_task(connection, workspace_id=workspace, owner_id=owner),
        **await _foreign(connection, nonce),
        "template": f"t{nonce}",
        "model": f"m{nonce}",
        "webhook": webhook_id,
        "agent": "a",
        "nonce": nonce,
    }


async def _tokens(connection: Connection, nonce: int, owner: int) -> dict[str, Any]:
    """An access token of the owner, and somebody else with one."""
    other = await connection.scalar(insert(users).values(username=f"u{nonce}").returning(users.c.id))
    await connection.execute(insert(groups).values(name=f"{other}DeterminedPersonalGroup", user_id=other))
    made = {}
    for name, user in (("token", owner), ("others_token", other)):
        row = {"user_id": user, "token_hash": new_uuid().encode(), "token_type": "ACCESS", "expires_at": FAR}
        made[name] = await connection.scalar(insert(user_sessions).values(row).returning(user_sessions.c.id))
    return {**made, "user": other}


async def _foreign(connection: Connection, nonce: int) -> dict[str, Any]:
    """A workspace in which nobody is given a role, with what somebody may want to take from it."""
    workspace = await insert_workspace(connection, name=f"foreign-{nonce}")
    project = await insert_project(connection, workspace_id=workspace, name="p")
    config = {"name": "e", "searcher": {"name": "single", "metric": "loss"}}
    experiment = await insert_experiment(connection, project_id=project, state="COMPLETED", config=config)
    trial = await insert_trial(connection, experiment_id=experiment, project_id=project, state="COMPLETED")
    uuid = await insert_checkpoint(connection, trial_id=trial, experiment_id=experiment)
    return {"foreign": workspace, "foreign_checkpoint": uuid}


def _filled(body: Any, objects: Mapping[str, Any]) -> Any:
    if isinstance(body, str):
        return body.format(**objects)
    if isinstance(body, list):
        return [_filled(value, objects) for value in body]
    return {key: _filled(value, objects) for key, value in body.items()} if isinstance(body, dict) else body


def ask(client: httpx.Client, right: Right, objects: Mapping[str, Any]) -> httpx.Response:
    body = _filled(right.body, objects)
    return client.request(right.method, right.path.format(**objects), **({} if body is None else {"json": body}))


@pytest.fixture(scope="module")
def basic(world: World) -> Iterator[Persons]:
    world.publish(two_nodes())
    with ExitStack() as stack, api_with(world, "basic") as api:
        persons = Persons(world, api, stack)
        for name in ("b-owner", "b-parent", "b-other"):
            persons.add(name)
        yield persons


@pytest.fixture(scope="module")
def rbac(world: World) -> Iterator[Persons]:
    world.publish(two_nodes())
    with ExitStack() as stack, api_with(world, "rbac") as api:
        persons = Persons(world, api, stack)
        for role in (NO_ROLE, *LOCAL_ROLES, *CLUSTER_ROLES):
            persons.add(f"role-{role}")
            if role in CLUSTER_ROLES:
                persons.give(f"role-{role}", role)
        yield persons


BASIC = {ADMIN: "admin", OWNER: "b-owner", PARENT: "b-parent", OTHER: "b-other"}


def answered(reply: httpx.Response) -> tuple[int, str]:
    """Status and error; where each of many has a result, what a request for the one alone would be told."""
    body = reply.json() if reply.text.startswith("{") else {}
    if reply.status_code != 200 or "results" not in body:
        return reply.status_code, reply.text
    ((error),) = [result["error"] for result in body["results"]]
    if "access denied" in error or "only its owner or an administrator" in error:
        return 403, error
    is_hidden = re.fullmatch(r"experiment '\d+' not found|Run with id '\d+' not found", error)
    return (404 if is_hidden else 200), error


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: right.action)
def test_basic(basic: Persons, right: Right) -> None:
    ids = basic.ids
    for kind, name in BASIC.items():
        objects = basic.world.in_database(
            lambda c: _named(c, right, ids["b-owner"], None, NO_ROLE, parent=ids["b-parent"])
        )
        status, text = answered(ask(basic.clients[name], right, objects))
        if kind in right.basic:
            assert status not in {401, 403, 404, 500, 501}, (kind, text)
        else:
            assert status == 403, (kind, text)
            assert right.basic != ADMINS or any(words in text for words in FOR_ADMINISTRATORS), text


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: right.action)
def test_rbac(rbac: Persons, right: Right) -> None:
    for role in (NO_ROLE, *LOCAL_ROLES, *CLUSTER_ROLES):
        holder = rbac.ids[f"role-{role}"]
        # Owning it counts for nothing.
        objects = rbac.world.in_database(lambda c, h=holder, r=role: _named(c, right, h, h, r))
        reply = ask(rbac.clients[f"role-{role}"], right, objects)
        status, text = answered(reply)
        if role in right.rbac:
            assert status not in {401, 403, 404, 500, 501}, (role, text)
        elif role in right.seen:
            assert status == 403, (role, text)
            assert "access denied; required permissions: PERMISSION_TYPE_" in text
        else:
            assert status == 404, (role, text)
            assert reply.status_code == 200 or reply.json()["error"]["error"].endswith(
                ", please check your permissions."
            )


@pytest.mark.parametrize("action", ACTIONS, ids=str)
def test_each_of_many_has_a_result_by_what_may_be_done_with_it(rbac: Persons, action: OfMany) -> None:
    """Also where a filter finds them, which finds nothing that the caller may not change."""
    client, holder = rbac.clients["role-0"], rbac.ids["role-0"]
    roles = {MINE: EDITOR, SHOWN: VIEWER, HIDDEN: NO_ROLE}
    kind = "trial" if action.runs else "experiment"

    def made() -> dict[str, dict[str, Any]]:
        return {at: rbac.world.in_database(lambda c, r=r: _objects(c, holder, holder, r)) for at, r in roles.items()}

    def results(objects: Mapping[str, Any], body: Mapping[str, Any]) -> dict[int, str]:
        destination = {"destinationProjectId": objects[MINE]["sibling"]}
        reply = client.request(action.method, action.path, json={**destination, **dict(action.body), **body})
        assert reply.status_code == 200, reply.text
        return {result["id"]: result["error"] for result in reply.json()["results"]}

    objects = made()
    ids = {**{at: each[kind] for at, each in objects.items()}, MISSING: 999_999}
    said = results(objects, {action.ids: list(ids.values())})
    assert said == {ident: action.said(at, ident) for at, ident in ids.items()}
    objects = made()
    if action.runs:
        wanted = [field("id", "=", each["trial"], "RUN") for each in objects.values()]
        found = {"filter": json.dumps({"filterGroup": group("or", *wanted), "showArchived": True})}
    else:
        others = {"excludedExperimentIds": list(range(objects[MINE]["experiment"]))}
        found = {"filters": {"states": ["STATE_COMPLETED"], "archived": False, **others}}
    assert results(objects, found) == {objects[MINE][kind]: action.done}


@pytest.mark.parametrize("action", ACTIONS, ids=str)
def test_each_of_many_has_a_result_by_whose_it_is(basic: Persons, action: OfMany) -> None:
    client, me, other = basic.clients["b-owner"], basic.ids["b-owner"], basic.ids["b-other"]
    mine = basic.world.in_database(lambda c: _objects(c, me, None, NO_ROLE))
    theirs = basic.world.in_database(lambda c: _objects(c, other, None, NO_ROLE, parent=me))
    kind = "trial" if action.runs else "experiment"
    both = [mine[kind], theirs[kind]]
    body: dict[str, Any] = {action.ids: both, "destinationProjectId": mine["sibling"], **dict(action.body)}
    reply = client.request(action.method, action.path, json=body)
    assert reply.status_code == 200, reply.text
    of_others = action.done if action.for_owners is None else action.for_owners
    said = {result["id"]: result["error"] for result in reply.json()["results"]}
    assert said == {mine[kind]: action.done, theirs[kind]: of_others}


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
    assert jobs
    assert all("full" not in job for job in jobs)


def test_everybody_is_somebody(rbac: Persons, tmp_path: Path) -> None:
    async def work(connection: Connection) -> int:
        query = select(users.c.id).where(~users.c.id.in_(select(groups.c.user_id).where(groups.c.user_id.is_not(None))))
        return len((await connection.execute(query)).all())

    assert rbac.world.in_database(work) == 0
