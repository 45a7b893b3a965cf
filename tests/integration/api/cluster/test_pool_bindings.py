"""Pools that are for some workspaces only, as the unmodified client binds them; and what is refused because of it."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Text, cast, func, insert, literal, select

from libs.db.engine import Connection
from libs.db.tables import workspaces as table
from services.api.actions.cluster.pool_bindings import _named_workspaces, _write, bound_workspaces
from services.api.wire.cluster.pool_bindings import PoolBindingRequest
from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.integration.api.world import CLUSTER, World

POOL = "scarce"
PATH = f"/api/v1/resource-pools/{POOL}/workspace-bindings"


@pytest.fixture(scope="module")
def world(world: World) -> World:
    """With a third pool: the defaults cannot be bound."""
    pools = CLUSTER.replace("resource_pools:\n", f"resource_pools:\n  - {{pool_name: {POOL}}}\n")
    (world.directory / "cluster.yaml").write_text(pools)
    return world


@pytest.fixture(scope="module")
def workspaces(api: ApiProcess, admin: httpx.Client) -> dict[str, int]:
    names = ("rich", "poor", "other")
    return {name: admin.post("/api/v1/workspaces", json={"name": name}).json()["workspace"]["id"] for name in names}


def bound(client: httpx.Client) -> list[int]:
    found: list[int] = client.get(PATH).json()["workspaceIds"]
    return found


def error(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["error"]


def test_bindings_are_added_listed_replaced_and_removed(det: Det, admin: httpx.Client, workspaces: Any) -> None:
    assert workspaces["poor"] > 1
    added = det("rp", "bindings", "add", POOL, "rich", "poor")
    assert "added bindings" in added.out
    det("rp", "bindings", "add", POOL, "rich")
    assert "rich, poor" in det("rp", "bindings", "list-workspaces", POOL).out
    listed = admin.get(PATH, params={"limit": 1, "offset": 1}).json()
    assert (listed["workspaceIds"], listed["pagination"]["total"]) == ([workspaces["poor"]], 2)
    det("rp", "bindings", "replace", POOL, "other", "POOR")
    assert bound(admin) == [workspaces["poor"], workspaces["other"]]
    missing = det.fails("rp", "bindings", "remove", POOL, "other", "rich")
    assert f"binding of resource pool {POOL} to workspace '{workspaces['rich']}' not found" in missing.err
    assert bound(admin) == [workspaces["poor"], workspaces["other"]], "all or nothing"
    det("rp", "bindings", "remove", POOL, "other", "poor")
    assert bound(admin) == []


def test_a_bound_pool_is_for_those_workspaces_only(
    det: Det, admin: httpx.Client, user: httpx.Client, workspaces: dict[str, int], tmp_path: Path
) -> None:
    rich, poor = workspaces["rich"], workspaces["poor"]
    det("rp", "bindings", "add", POOL, "rich")
    try:
        assert POOL in det("workspace", "list-pools", "rich").out
        assert POOL not in det("workspace", "list-pools", "poor").out
        pools = {pool["name"] for pool in admin.get("/api/v1/resource-pools?unbound=true").json()["resourcePools"]}
        assert pools == {"gpus", "cpus"}
        says = f"resource pool {POOL} does not exist or is not available to workspace ID {poor}"
        for workspace, status in ((poor, 400), (rich, 200)):
            project = admin.post(f"/api/v1/workspaces/{workspace}/projects", json={"name": f"p{workspace}"}).json()
            config = json.dumps(experiment_in(POOL))
            body = {"config": config, "projectId": project["project"]["id"], "validateOnly": True}
            reply = user.post("/api/v1/experiments", json=body)
            assert reply.status_code == status, reply.text
            if status == 400:
                assert says in error(reply)[1]
        command = ("cmd", "run", "--config", f"resources.resource_pool={POOL}", "--config", "resources.slots=1")
        assert says in det.fails(*command, "-w", "poor", "--detach", "true").err
        task = {"config": f"entrypoint: ['true']\nresources: {{resource_pool: {POOL}}}"}
        task_reply = user.post("/api/v1/generic-tasks", json={**task, "contextDirectory": []})
        assert task_reply.status_code == 400
        assert "not available to workspace ID 1" in error(task_reply)[1]
    finally:
        det("rp", "bindings", "remove", POOL, "rich")


def test_default_pools_have_to_be_available(admin: httpx.Client, workspaces: dict[str, int]) -> None:
    path = f"/api/v1/workspaces/{workspaces['poor']}"
    assert admin.put(PATH, json={"workspaceIds": [workspaces["rich"]]}).json() == {}
    refused = "unable to bind a resource pool that does not exist or is not available to the workspace"
    assert error(admin.patch(path, json={"defaultComputeResourcePool": POOL})) == (400, refused)
    new = admin.post("/api/v1/workspaces", json={"name": "newer", "defaultAuxPool": POOL})
    assert error(new) == (400, refused)
    allowed = admin.patch(f"/api/v1/workspaces/{workspaces['rich']}", json={"defaultComputeResourcePool": POOL})
    assert allowed.json()["workspace"]["defaultComputePool"] == POOL
    admin.patch(f"/api/v1/workspaces/{workspaces['rich']}", json={"defaultComputeResourcePool": ""})
    assert admin.put(PATH, json={}).json() == {}
    assert bound(admin) == []
    assert admin.patch(path, json={"defaultComputeResourcePool": POOL}).status_code == 200
    admin.patch(path, json={"defaultComputeResourcePool": ""})


def test_what_is_wrong_is_refused(
    det: Det, admin: httpx.Client, user: httpx.Client, workspaces: dict[str, int]
) -> None:
    assert "cannot be bound to any workspace" in det.fails("rp", "bindings", "add", "gpus", "rich").err
    for command in (("add", "moon", "rich"), ("replace", "moon", "rich"), ("remove", "moon", "rich")):
        assert "pool with name moon doesn't exist" in det.fails("rp", "bindings", *command).err
    assert "doesn't exist" in det.fails("rp", "bindings", "list-workspaces", "moon").err
    for command in ("add", "replace", "remove"):
        assert "workspace 'nowhere' not found" in det.fails("rp", "bindings", command, POOL, "rich", "nowhere").err
    assert error(admin.post(PATH, json={"workspaceIds": [2**31 - 1]}))[0] == 404
    for method in ("POST", "DELETE"):
        assert error(admin.request(method, PATH, json={}))[0] == 400
    for method in ("POST", "PUT", "DELETE"):
        refused = user.request(method, PATH, json={"workspaceIds": [workspaces["rich"]]})
        assert error(refused) == (403, "only admin privileged users can bind resource pools to workspaces")
    assert bound(admin) == []


def test_any_number_of_workspaces_may_be_bound_at_once(world: World) -> None:
    """A statement has 32,767 parameters at most."""

    async def work(connection: Connection) -> None:
        async with connection.begin_nested() as nothing_stays:
            numbers = func.generate_series(1, 33_000).column_valued("number")
            name = func.concat("many-", cast(numbers, Text))
            made = insert(table.workspaces).from_select(["name", "owner_id"], select(name, literal(1)))
            ids = list(await connection.scalars(made.returning(table.workspaces.c.id)))
            request = PoolBindingRequest(workspace_ids=ids, workspace_names=["MANY-1", "many-2"])
            assert await _named_workspaces(connection, request) == set(ids)
            for _ in range(2):
                await _write(connection, POOL, added=ids)
            assert await bound_workspaces(connection, POOL) == set(ids)
            await _write(connection, POOL, removed=ids)
            assert await bound_workspaces(connection, POOL) == set()
            await nothing_stays.rollback()

    world.in_database(work)


def test_of_two_who_replace_at_once_one_wins(admin: httpx.Client, workspaces: dict[str, int]) -> None:
    wanted = [[workspaces["rich"]], [workspaces["poor"]]]
    with ThreadPoolExecutor() as threads:
        for _ in range(10):
            list(threads.map(lambda ids: admin.put(PATH, json={"workspaceIds": ids}).raise_for_status(), wanted))
            assert bound(admin) in wanted
    admin.put(PATH, json={})


def experiment_in(pool: str) -> dict[str, Any]:
    return {
        "name": "bound",
        "entrypoint": "true",
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
        "resources": {"resource_pool": pool, "slots_per_trial": 1},
        "checkpoint_storage": {"type": "directory", "container_path": os.sep + "tmp"},
    }
