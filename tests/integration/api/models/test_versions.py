"""Versions of models: how they are numbered, what they tell, and that their checkpoints stay."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from sqlalchemy import delete, select

from libs.cluster.config import TaskContainerDefaults
from libs.config.defaults import CPU_IMAGE
from libs.db.engine import Connection
from libs.db.tables.checkpoints import checkpoint_gc_requests, checkpoints
from libs.db.tables.tasks import allocations
from libs.tasks.checkpoint_gc import checkpoint_gc_task
from libs.tasks.stored import to_document
from tests.builders import insert_allocation, insert_task
from tests.integration.api.models.registry import (
    ALL,
    answered,
    error_of,
    get_model,
    new_checkpoint,
    new_model,
    register,
)
from tests.integration.api.world import World

MISSING = "00000000-0000-4000-8000-000000000000"


def test_a_version_is_a_checkpoint_with_a_number(user: httpx.Client, world: World) -> None:
    experiment, uuid = new_checkpoint(world)
    before = new_model(user, "versioned")
    fields = {"name": "first", "comment": "good", "notes": "# Notes", "metadata": {"a": 1}, "labels": ["a,b", "a,b"]}
    made = register(user, "versioned", uuid, **fields)
    model = get_model(user, "versioned")
    assert (model["numVersions"], model["lastUpdatedTime"]) == (1, made["creationTime"])
    assert model["lastUpdatedTime"] > before["lastUpdatedTime"]
    checkpoint = answered(user.get(f"/api/v1/checkpoints/{uuid}"))["checkpoint"]
    assert checkpoint["training"]["experimentId"] == experiment
    assert made == {
        **fields,
        "id": made["id"],
        "labels": ["a,b"],
        "model": model,
        "version": 1,
        "checkpoint": checkpoint,
        "userId": 2,
        "username": "determined",
        "creationTime": made["creationTime"],
        "lastUpdatedTime": made["creationTime"],
    }
    for name in ("versioned", model["id"]):
        assert answered(user.get(f"{ALL}/{name}/versions/1"))["modelVersion"] == made
    for ident in (made["id"] + 1000, 0, -1, 2):
        missing = (404, f'version {ident} for model "versioned" not found')
        assert error_of(user.get(f"{ALL}/versioned/versions/{ident}")) == missing
    assert user.get(f"{ALL}/versioned/versions/99999999999999999999").status_code == 400


def test_numbers_are_given_once_also_to_many_at_once(admin: httpx.Client, world: World) -> None:
    new_model(admin, "counted")
    _, uuid = new_checkpoint(world)
    with ThreadPoolExecutor(6) as pool:
        numbers = list(pool.map(lambda _: register(admin, "counted", uuid)["version"], range(6)))
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]
    answered(admin.delete(f"{ALL}/counted/versions/3"))
    assert register(admin, "counted", uuid.upper())["version"] == 7


def test_lists_of_versions(admin: httpx.Client, world: World) -> None:
    model = new_model(admin, "listed")
    uuids = [new_checkpoint(world)[1] for _ in range(3)]
    for uuid in uuids:
        register(admin, "listed", uuid)

    def numbers(**query: Any) -> list[int]:
        reply = answered(admin.get(f"{ALL}/listed/versions", params=query))
        assert reply["model"]["id"] == model["id"]
        return [version["version"] for version in reply["modelVersions"]]

    assert numbers() == [1, 2, 3]
    for sort in ("SORT_BY_VERSION", "SORT_BY_CREATION_TIME"):
        assert numbers(sortBy=sort, orderBy="ORDER_BY_DESC") == [3, 2, 1]
    assert numbers(limit=2, offset=1) == [2, 3]
    assert numbers(offset=-1) == [3]
    assert error_of(admin.get(f"{ALL}/listed/versions?offset=4")) == (400, "offset out of bounds")
    found = answered(admin.get(f"{ALL}/listed/versions"))["modelVersions"]
    assert [version["checkpoint"]["uuid"] for version in found] == uuids
    sorted_by = answered(admin.get(ALL, params={"sortBy": "SORT_BY_NUM_VERSIONS", "orderBy": "ORDER_BY_DESC"}))
    counts = [each["numVersions"] for each in sorted_by["models"]]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] >= 3


def test_what_cannot_be_registered(admin: httpx.Client, world: World) -> None:
    new_model(admin, "picky")
    path = f"{ALL}/picky/versions"
    assert error_of(admin.post(path, json={})) == (400, "checkpointUuid must be given")
    for uuid in (MISSING, "nonsense"):
        refusal = (404, f"checkpoint '{uuid}' not found")
        assert error_of(admin.post(path, json={"checkpointUuid": uuid})) == refusal
    for state in ("DELETED", "PARTIALLY_DELETED"):
        _, uuid = new_checkpoint(world, state=state)
        refusal = (400, f"checkpoint '{uuid}' is {state}: only a COMPLETED one can be registered")
        assert error_of(admin.post(path, json={"checkpointUuid": uuid})) == refusal
    _, uuid = new_checkpoint(world)
    assert error_of(admin.post(path, json={"checkpointUuid": uuid, "labels": [""]}))[0] == 400
    assert error_of(admin.post(f"{ALL}/nobody/versions", json={"checkpointUuid": uuid})) == (
        404,
        'model "nobody" not found',
    )
    answered(admin.post(f"{ALL}/picky/archive"))
    refusal = (400, 'model "picky" is archived and cannot be changed: unarchive it first')
    assert error_of(admin.post(path, json={"checkpointUuid": uuid})) == refusal
    assert get_model(admin, "picky")["numVersions"] == 0


def test_a_patch_changes_what_it_names(admin: httpx.Client, world: World) -> None:
    new_model(admin, "edited")
    _, uuid = new_checkpoint(world)
    made = register(admin, "edited", uuid, name="v", notes="n", metadata={"a": 1}, labels=["a"])
    path = f"{ALL}/edited/versions/1"
    assert answered(admin.patch(path, json={}))["modelVersion"] == made
    change = {"name": "w", "comment": "c", "notes": "", "metadata": {"b": 2}, "labels": []}
    changed = answered(admin.patch(path, json={**change, "checkpoint": {"uuid": MISSING}}))["modelVersion"]
    assert {key: changed[key] for key in change} == change
    assert changed["checkpoint"]["uuid"] == uuid
    assert changed["lastUpdatedTime"] == changed["model"]["lastUpdatedTime"] > made["lastUpdatedTime"]
    assert error_of(admin.patch(f"{ALL}/edited/versions/2", json=change))[0] == 404
    answered(admin.post(f"{ALL}/edited/archive"))
    assert "archived" in error_of(admin.patch(path, json={"name": "x"}))[1]


def test_only_owners_and_administrators_delete_versions(admin: httpx.Client, user: httpx.Client, world: World) -> None:
    new_model(admin, "guarded")
    _, uuid = new_checkpoint(world)
    for client in (admin, user, user):
        register(client, "guarded", uuid)
    refusal = (403, "non-admin users may not delete other users' models")
    assert error_of(user.delete(f"{ALL}/guarded/versions/1")) == refusal
    answered(user.delete(f"{ALL}/guarded/versions/2"))
    answered(admin.delete(f"{ALL}/guarded/versions/3"))
    assert get_model(admin, "guarded")["numVersions"] == 1
    assert error_of(user.delete(f"{ALL}/guarded/versions/2"))[0] == 404


def test_a_registered_checkpoint_keeps_its_files(admin: httpx.Client, world: World) -> None:
    new_model(admin, "precious")
    experiment, uuid = new_checkpoint(world)
    _, other = new_checkpoint(world)
    register(admin, "precious", uuid)
    in_registry = f"this subset of checkpoints provided are in the model registry and cannot be {{}}: {uuid}"
    deletion = admin.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [other, uuid]})
    assert error_of(deletion) == (400, in_registry.format("deleted"))
    for globs in (["**/*"], []):
        removal = admin.post("/api/v1/checkpoints/rm", json={"checkpointUuids": [uuid], "checkpointGlobs": globs})
        assert error_of(removal) == (400, in_registry.format("deleted"))
    nothing_left = [{"uuid": one, "resources": {"resources": {}}} for one in (other, uuid)]
    patched = admin.patch("/api/v1/checkpoints", json={"checkpoints": nothing_left})
    assert error_of(patched) == (400, in_registry.format("patched"))
    reason = 'checkpoints are registered as model versions: version 1 of model "precious"'
    for query in ("", "?force=true"):
        assert error_of(admin.delete(f"/api/v1/experiments/{experiment}{query}")) == (400, reason)
    bulk = admin.request("DELETE", "/api/v1/projects/1/experiments/delete", json={"experimentIds": [experiment]})
    assert answered(bulk)["results"] == [{"id": experiment, "error": reason}]

    async def requested(connection: Connection) -> list[list[str]]:
        return list(await connection.scalars(select(checkpoint_gc_requests.c.uuids)))

    assert world.in_database(requested) == []
    states = [answered(admin.get(f"/api/v1/checkpoints/{one}"))["checkpoint"]["state"] for one in (other, uuid)]
    assert states == ["STATE_COMPLETED"] * 2

    answered(admin.delete(f"{ALL}/precious"))
    answered(admin.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [uuid]}))
    assert world.in_database(requested) == [[uuid]]
    new_model(admin, "too late")
    refusal = (400, f"files of checkpoint '{uuid}' are being deleted")
    assert error_of(admin.post(f"{ALL}/too late/versions", json={"checkpointUuid": uuid})) == refusal


def test_what_is_being_deleted_is_not_registered(admin: httpx.Client, world: World) -> None:
    new_model(admin, "last minute")
    path = f"{ALL}/last minute/versions"
    _, doomed = new_checkpoint(world, experiment_state="DELETING")
    assert "are being deleted" in error_of(admin.post(path, json={"checkpointUuid": doomed}))[1]
    experiment, uuid = new_checkpoint(world)

    async def start_gc(connection: Connection, globs: list[str]) -> str:
        config: dict[str, Any] = {"environment": {"environment_variables": {"cpu": []}}}
        defaults = TaskContainerDefaults(image={"cpu": CPU_IMAGE, "cuda": CPU_IMAGE, "rocm": CPU_IMAGE})
        storage = {"type": "directory", "container_path": "/checkpoints"}
        spec = checkpoint_gc_task(
            experiment_id=experiment,
            config=config,
            storage=storage,
            checkpoints=[uuid],
            globs=globs,
            defaults=defaults,
        )
        row: dict[str, Any] = {"task_type": "CHECKPOINT_GC", "experiment_id": experiment, "spec": to_document(spec)}
        return await insert_allocation(connection, task_id=await insert_task(connection, **row))

    world.in_database(lambda connection: start_gc(connection, []))
    answered(admin.post(path, json={"checkpointUuid": uuid}))
    answered(admin.delete(f"{path}/1"))
    running = world.in_database(lambda connection: start_gc(connection, ["**/*"]))
    assert "are being deleted" in error_of(admin.post(path, json={"checkpointUuid": uuid}))[1]
    over = delete(allocations).where(allocations.c.allocation_id == running)
    world.in_database(lambda connection: connection.execute(over))
    answered(admin.post(path, json={"checkpointUuid": uuid}))


def test_a_checkpoint_that_was_lost_elsewhere_is_shown_as_deleted(admin: httpx.Client, world: World) -> None:
    new_model(admin, "imported")
    _, uuid = new_checkpoint(world)
    register(admin, "imported", uuid)
    world.in_database(lambda connection: connection.execute(delete(checkpoints).where(checkpoints.c.uuid == uuid)))
    found = answered(admin.get(f"{ALL}/imported/versions/1"))["modelVersion"]["checkpoint"]
    assert (found["uuid"], found["state"], found["resources"]) == (uuid, "STATE_DELETED", {})
