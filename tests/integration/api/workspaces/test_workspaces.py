"""Workspaces, projects and the queue beyond what the command line shows."""

from __future__ import annotations

import random
import string
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.exc import DBAPIError

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Connection, connect_database
from libs.db.tables.experiments import experiments
from libs.db.tables.models import models
from libs.db.tables.tasks import jobs, tasks
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects, workspaces
from libs.errors import InvalidRequest
from services.api.http.database_errors import as_known_error
from tests.integration.api.world import Rows, World

INCOMPRESSIBLE = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=4000))
"""More than an entry of an index can hold, however it is compressed."""


def workspace(admin: httpx.Client, name: str, **fields: Any) -> dict[str, Any]:
    reply = admin.post("/api/v1/workspaces", json={"name": name, **fields})
    assert reply.status_code == 200, reply.text
    assert reply.json()["namespaceBindings"] == {}
    found: dict[str, Any] = reply.json()["workspace"]
    return found


def project(admin: httpx.Client, workspace_id: int, name: str, **fields: Any) -> dict[str, Any]:
    reply = admin.post(f"/api/v1/workspaces/{workspace_id}/projects", json={"name": name, **fields})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["project"]
    return found


def error_of(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["error"]


def listed(admin: httpx.Client, **query: str) -> dict[str, Any]:
    [found] = admin.get("/api/v1/workspaces", params=query).json()["workspaces"]
    return dict(found)


def test_masked_secrets_that_come_back_stay_secret(admin: httpx.Client, world: World) -> None:
    storage = {"type": "s3", "bucket": "b", "access_key": "AK", "secret_key": "SK"}
    made = workspace(admin, "masked", checkpointStorageConfig=storage)
    shown = made["checkpointStorageConfig"]
    admin.patch(f"/api/v1/workspaces/{made['id']}", json={"checkpointStorageConfig": {**shown, "bucket": "c"}})

    async def stored(connection: Connection) -> Any:
        return await connection.scalar(select(workspaces.c.checkpoint_storage).where(workspaces.c.id == made["id"]))

    assert world.in_database(stored) == {**storage, "bucket": "c"}
    assert "checkpointStorageConfig" not in listed(admin, name="masked"), "a list says nothing of storage"
    assert listed(admin, nameCaseSensitive="masked")["checkpointStorageConfig"] == {**shown, "bucket": "c"}
    cleared = admin.patch(f"/api/v1/workspaces/{made['id']}", json={"checkpointStorageConfig": {}}).json()["workspace"]
    assert cleared.get("checkpointStorageConfig") is None


def test_identities_come_in_pairs_and_from_administrators(admin: httpx.Client, user: httpx.Client) -> None:
    half = {"name": "half", "agentUserGroup": {"agentUid": 5}}
    assert admin.post("/api/v1/workspaces", json=half).status_code == 400
    group = {"agentGid": 5, "agentGroup": "g"}
    assert workspace(admin, "whole", agentUserGroup=group)["agentUserGroup"] == group
    assert user.post("/api/v1/workspaces", json={"name": "not", "agentUserGroup": group}).status_code == 403


@pytest.mark.parametrize("name", ["", "  ", "x" * 81])
def test_names_have_a_length(admin: httpx.Client, name: str) -> None:
    assert admin.post("/api/v1/workspaces", json={"name": name}).status_code == 400


def test_pins_are_everyones_own(admin: httpx.Client, user: httpx.Client) -> None:
    made = workspace(admin, "pinned")
    assert made["pinned"] is True
    path = f"/api/v1/workspaces/{made['id']}"
    assert user.get(path).json()["workspace"]["pinned"] is False
    for _ in range(2):
        assert user.post(f"{path}/pin").status_code == 200
    assert [one["id"] for one in user.get("/api/v1/workspaces?pinned=true").json()["workspaces"]] == [made["id"]]
    user.post(f"{path}/unpin")
    assert user.get("/api/v1/workspaces?pinned=true").json()["workspaces"] == []
    assert user.post("/api/v1/workspaces/999/pin").status_code == 404


def test_lookups_by_name(admin: httpx.Client) -> None:
    made = workspace(admin, "Look-Up")

    def found(**query: str) -> list[int]:
        return [one["id"] for one in admin.get("/api/v1/workspaces", params=query).json()["workspaces"]]

    assert found(name="look-up") == found(nameCaseSensitive="Look-Up") == [made["id"]]
    assert found(nameCaseSensitive="look-up") == found(name="look") == found(nameCaseSensitive="Look%") == []
    assert found(name="look%") == found(name="%K-u%") == [made["id"]]
    assert found(name="Look_Up") == found(name="Look_U%") == found(name="%\\") == []


def test_a_name_goes_before_the_pattern_it_could_be(admin: httpx.Client) -> None:
    both = [workspace(admin, name)["id"] for name in ("1000 trees", "100% trees")]
    found = admin.get("/api/v1/workspaces", params={"name": "100% TREES"}).json()["workspaces"]
    assert [one["id"] for one in found] == both[1:]


def test_names_of_projects_may_differ_by_case_alone(admin: httpx.Client) -> None:
    home, other = workspace(admin, "case")["id"], workspace(admin, "other case")["id"]
    upper, lower = project(admin, home, "Vision")["id"], project(admin, home, "vision")["id"]
    project(admin, other, "VISION")

    def found(name: str) -> list[int]:
        reply = admin.get(f"/api/v1/workspaces/{home}/projects", params={"name": name})
        return [one["id"] for one in reply.json()["projects"]]

    assert (found("Vision"), found("vision"), found("VISION"), found("Visio")) == ([upper], [lower], [upper, lower], [])


@pytest.mark.parametrize("name", ["x" * 257, INCOMPRESSIBLE])
def test_names_of_projects_have_a_length(admin: httpx.Client, name: str) -> None:
    one = project(admin, workspace(admin, f"{len(name)} long")["id"], "x" * 256)
    replies = [
        admin.post(f"/api/v1/workspaces/{one['workspaceId']}/projects", json={"name": name}),
        admin.patch(f"/api/v1/projects/{one['id']}", json={"name": name}),
    ]
    assert [error_of(reply) for reply in replies] == [(400, "name: must not be longer than 256 characters")] * 2


async def test_what_no_index_can_hold_is_refused(database_url: str) -> None:
    """Whatever else finds its way into an index."""
    async with connect_database(DatabaseSettings(url=database_url, pool_size=1)) as db:
        with pytest.raises(DBAPIError) as caught:
            async with db.transaction() as connection:
                await connection.execute(insert(users).values(username=INCOMPRESSIBLE))
    assert isinstance(as_known_error(caught.value), InvalidRequest)


def test_what_has_models_is_not_deleted(admin: httpx.Client, world: World) -> None:
    home = workspace(admin, "registry")

    async def register(connection: Connection) -> None:
        await connection.execute(insert(models).values(name="mnist", owner_id=1, workspace_id=home["id"]))

    world.in_database(register)
    refused = error_of(admin.delete(f"/api/v1/workspaces/{home['id']}"))
    assert refused == (400, f"workspace ({home['id']}) contains models; move or delete models first")


def test_what_has_experiments_is_deleted_later(admin: httpx.Client, rows: Rows, world: World) -> None:
    home = workspace(admin, "busy")
    inside = project(admin, home["id"], "experiments")
    ident, _ = rows.experiment()

    async def move(connection: Connection) -> None:
        row = experiments.update().where(experiments.c.id == ident).values(project_id=inside["id"])
        await connection.execute(row)

    world.in_database(move)
    assert admin.get(f"/api/v1/workspaces/{home['id']}").json()["workspace"]["numExperiments"] == 1
    assert admin.delete(f"/api/v1/workspaces/{home['id']}").json() == {"completed": False}
    seen = admin.get(f"/api/v1/projects/{inside['id']}").json()["project"]
    assert (seen["state"], seen["numExperiments"]) == ("WORKSPACE_STATE_DELETING", 1)
    late = admin.post(f"/api/v1/workspaces/{home['id']}/projects", json={"name": "late"})
    assert "being deleted" in error_of(late)[1]


def test_processes_have_no_namespaces(admin: httpx.Client) -> None:
    home = workspace(admin, "groundless")
    one = f"/api/v1/workspaces/{home['id']}"
    meta = {"clusterNamespaceMeta": {"": {"autoCreateNamespace": True}}}
    pairs = {"clusterQuotaPairs": {"": 1}}
    refused = [
        admin.post("/api/v1/workspaces", json={"name": "grounded", **meta}),
        admin.post("/api/v1/workspaces", json={"name": "grounded", **pairs}),
        admin.patch(one, json=meta),
        admin.post(f"{one}/namespace-bindings", json=meta),
        admin.post(f"{one}/set-resource-quota", json=pairs),
        admin.post("/api/v1/namespace-bindings/bulk-auto-create", json={"workspaceIds": [home["id"]]}),
    ]
    for reply in refused:
        status, text = error_of(reply)
        assert (status, "run as processes" in text) == (400, True), text
    default = {"workspaceId": home["id"], "namespace": "default", "clusterName": "here", "autoCreateNamespace": False}
    assert admin.get(f"{one}/list-namespace-bindings").json() == {"namespaceBindings": {"here": default}}
    assert admin.get(f"{one}/get-k8s-resource-quotas").json() == {"resourceQuotas": {}}
    unbound = admin.get("/api/v1/namespace-bindings/workspace-ids-with-default-bindings").json()
    assert unbound == {"workspaceIds": []}
    status, text = error_of(admin.delete(f"{one}/namespace-bindings", params={"clusterNames": [""]}))
    assert (status, "tried to delete default binding for cluster here" in text) == (400, True)


def test_keys_are_unique_and_found_without_case(admin: httpx.Client) -> None:
    home = workspace(admin, "keys")
    first = project(admin, home["id"], "b-a c!", key="ab1")
    assert first["key"] == "AB1"
    assert admin.get("/api/v1/projects/key/aB1").json()["project"]["id"] == first["id"]
    taken = admin.post(f"/api/v1/workspaces/{home['id']}/projects", json={"name": "second", "key": "AB1"})
    assert taken.status_code == 409
    wrong = admin.post(f"/api/v1/workspaces/{home['id']}/projects", json={"name": "second", "key": "a-b"})
    assert wrong.status_code == 400
    made = project(admin, home["id"], "b-a c!d")
    assert made["key"].startswith("BAC")
    assert len(made["key"]) == 5


def test_an_old_key_leads_to_its_project_and_to_no_other(admin: httpx.Client) -> None:
    home = workspace(admin, "old keys")["id"]
    one = project(admin, home, "one", key="old1")
    path = f"/api/v1/projects/{one['id']}"
    assert admin.patch(path, json={"key": "new1"}).json()["project"]["key"] == "NEW1"
    found = [admin.get(f"/api/v1/projects/key/{key}").json()["project"]["key"] for key in ("old1", "new1")]
    assert found == ["NEW1", "NEW1"]
    other = project(admin, home, "other", key="other")
    taken = (409, "project key OLD1 is already in use")
    assert error_of(admin.patch(f"/api/v1/projects/{other['id']}", json={"key": "old1"})) == taken
    assert admin.patch(path, json={"key": "old1"}).json()["project"]["key"] == "OLD1", "it had this one itself"
    assert admin.delete(path).json() == {"completed": True}
    assert admin.get("/api/v1/projects/key/old1").status_code == 404
    assert error_of(admin.post(f"/api/v1/workspaces/{home}/projects", json={"name": "one", "key": "old1"})) == taken


def test_a_key_is_not_taken_away(admin: httpx.Client) -> None:
    one = project(admin, workspace(admin, "keyed")["id"], "p", key="kept1")
    reply = admin.patch(f"/api/v1/projects/{one['id']}", json={"key": ""})
    assert error_of(reply) == (400, "key: must be 1 to 5 letters and digits")
    assert admin.get(f"/api/v1/projects/{one['id']}").json()["project"]["key"] == "KEPT1"


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("PATCH", "", "change"),
        ("POST", "/archive", "archive"),
        ("POST", "/unarchive", "unarchive"),
        ("DELETE", "", "delete"),
    ],
)
def test_workspaces_of_others_are_for_administrators(
    admin: httpx.Client, user: httpx.Client, method: str, path: str, verb: str
) -> None:
    ident = workspace(admin, f"not yours to {verb}")["id"]
    reply = user.request(method, f"/api/v1/workspaces/{ident}{path}", json={"name": "mine"})
    assert error_of(reply) == (403, f"only admins may {verb} other user's workspaces")


def test_notes_that_lack_something_are_read(admin: httpx.Client, world: World) -> None:
    """As earlier imports have stored them."""
    ident = project(admin, workspace(admin, "odd notes")["id"], "p")["id"]
    stored = [{"name": "empty"}, None, {"contents": "unnamed"}]
    change = update(projects).where(projects.c.id == ident).values(notes=stored)
    world.in_database(lambda connection: connection.execute(change))
    kept = [{"name": "empty", "contents": ""}, {"name": "", "contents": "unnamed"}]
    assert admin.get(f"/api/v1/projects/{ident}").json()["project"]["notes"] == kept
    more = {"name": "more", "contents": "text"}
    assert admin.post(f"/api/v1/projects/{ident}/notes", json=more).json()["notes"] == [*kept, more]


def test_notes_are_added_and_replaced(admin: httpx.Client) -> None:
    ident = project(admin, workspace(admin, "notes")["id"], "p")["id"]
    one, two = {"name": "a", "contents": "1"}, {"name": "b", "contents": "2"}
    assert admin.post(f"/api/v1/projects/{ident}/notes", json=one).json() == {"notes": [one]}
    assert admin.post(f"/api/v1/projects/{ident}/notes", json=two).json() == {"notes": [one, two]}
    assert admin.put(f"/api/v1/projects/{ident}/notes", json={"notes": [two]}).json() == {"notes": [two]}
    assert admin.get(f"/api/v1/projects/{ident}").json()["project"]["notes"] == [two]


def test_projects_move(admin: httpx.Client) -> None:
    here, there = workspace(admin, "here"), workspace(admin, "there")
    moved = project(admin, here["id"], "same")
    clash = project(admin, there["id"], "same")
    path = f"/api/v1/projects/{moved['id']}/move"
    assert admin.post(path, json={"destinationWorkspaceId": there["id"]}).status_code == 409
    admin.delete(f"/api/v1/projects/{clash['id']}")
    assert admin.post(path, json={"destinationWorkspaceId": there["id"]}).status_code == 200
    listed = admin.get(f"/api/v1/workspaces/{there['id']}/projects").json()["projects"]
    assert [one["id"] for one in listed] == [moved["id"]]
    assert admin.post("/api/v1/projects/1/move", json={"destinationWorkspaceId": there["id"]}).status_code == 400


def test_archived_parents_come_first(admin: httpx.Client) -> None:
    home = workspace(admin, "parent")
    child = project(admin, home["id"], "child")
    admin.post(f"/api/v1/workspaces/{home['id']}/archive")
    reply = admin.post(f"/api/v1/projects/{child['id']}/unarchive")
    assert "first unarchive the workspace" in error_of(reply)[1]


def test_an_update_of_the_queue_does_what_it_can(admin: httpx.Client, rows: Rows, world: World) -> None:
    ident, job = rows.experiment()
    updates = [
        {"jobId": job, "priority": 7, "weight": None, "resourcePool": None},
        {"jobId": "gone", "priority": 7},
        {"jobId": job, "weight": 0},
        {"jobId": job, "aheadOf": "x"},
        {"jobId": job},
    ]
    status, text = error_of(admin.post("/api/v1/job-queues", json={"updates": updates}))
    assert status == 400
    assert text.startswith("encountered the following errors: job gone not found, weight must be greater than 0, ")

    async def stored(connection: Connection) -> Any:
        config: Any = await connection.scalar(select(experiments.c.config).where(experiments.c.id == ident))
        return config["resources"]["priority"], await connection.scalar(
            select(jobs.c.priority).where(jobs.c.job_id == job)
        )

    assert world.in_database(stored) == (7, 7)


def test_an_experiment_changes_its_pool(admin: httpx.Client, rows: Rows, world: World) -> None:
    ident, job = rows.experiment()
    assert admin.post("/api/v1/job-queues", json={"updates": [{"jobId": job, "resourcePool": "cpus"}]}).json() == {}

    async def stored(connection: Connection) -> Any:
        config: Any = await connection.scalar(select(experiments.c.config).where(experiments.c.id == ident))
        return config["resources"]["resource_pool"], await connection.scalar(
            select(jobs.c.pool).where(jobs.c.job_id == job)
        )

    assert world.in_database(stored) == ("cpus", "cpus")


def test_ended_jobs_are_not_found(admin: httpx.Client, rows: Rows) -> None:
    _, job = rows.experiment(state="COMPLETED")
    reply = admin.post("/api/v1/job-queues", json={"updates": [{"jobId": job, "priority": 7}]})
    assert error_of(reply)[1] == f"job {job} not found"


def test_queue_statistics_name_every_pool(admin: httpx.Client, rows: Rows) -> None:
    _, job = rows.experiment()
    rows.allocation(job_id=job, assigned=False)
    cpus, gpus = admin.get("/api/v1/job-queues/stats").json()["results"]
    assert (cpus["resourcePool"], gpus["resourcePool"]) == ("cpus", "gpus")
    assert gpus["stats"] == {"queuedCount": 1, "scheduledCount": 0}
    assert gpus["aggregates"][-1].keys() == {"periodStart", "seconds"}
    assert admin.get("/api/v1/job-queues/stats?resourcePools=nowhere").json() == {"results": []}


def test_the_seeds_cannot_go(admin: httpx.Client, world: World) -> None:
    for path in ("/api/v1/workspaces/1", "/api/v1/projects/1"):
        assert "immutable" in error_of(admin.delete(path))[1]
        assert "immutable" in error_of(admin.patch(path, json={"name": "x"}))[1]
        assert "immutable" in error_of(admin.post(f"{path}/archive"))[1]

    async def left(connection: Connection) -> Any:
        return await connection.scalar(select(projects.c.state).where(projects.c.id == 1))

    assert world.in_database(left) == ""


def test_a_plain_user_hears_that_the_first_workspace_never_changes(user: httpx.Client) -> None:
    path = "/api/v1/workspaces/1"
    status, text = error_of(user.patch(path, json={"name": "mine"}))
    assert (status, "immutable" in text) == (400, True)
    for reply in (user.post(f"{path}/archive"), user.post(f"{path}/unarchive"), user.delete(path)):
        assert error_of(reply)[0] == 403, reply.text


def test_what_has_tasks_is_deleted_later(admin: httpx.Client, rows: Rows, world: World) -> None:
    home = workspace(admin, "has a notebook")
    task, job = rows.task()
    rows.allocation(job_id=job, task_id=task)
    owned = update(tasks).where(tasks.c.task_id == task).values(workspace_id=home["id"])
    world.in_database(lambda connection: connection.execute(owned))
    assert admin.delete(f"/api/v1/workspaces/{home['id']}").json() == {"completed": False}


def test_tasks_move_with_their_project(admin: httpx.Client, rows: Rows, world: World) -> None:
    here, there = workspace(admin, "from here"), workspace(admin, "to there")
    moved = project(admin, here["id"], "moves")
    ident, job = rows.experiment()
    task = rows.allocation(job_id=job).removesuffix(".1")

    async def put(connection: Connection) -> None:
        inside = {"project_id": moved["id"]}
        await connection.execute(update(experiments).where(experiments.c.id == ident).values(**inside))
        await connection.execute(update(tasks).where(tasks.c.task_id == task).values(experiment_id=ident))

    world.in_database(put)
    path = f"/api/v1/projects/{moved['id']}/move"
    assert admin.post(path, json={"destinationWorkspaceId": there["id"]}).status_code == 200

    async def owners(connection: Connection) -> list[int]:
        of_task = await connection.scalar(select(tasks.c.workspace_id).where(tasks.c.task_id == task))
        return [of_task or 0, await connection.scalar(select(jobs.c.workspace_id).where(jobs.c.job_id == job)) or 0]

    assert world.in_database(owners) == [there["id"]] * 2
