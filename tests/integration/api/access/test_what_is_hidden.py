"""What belongs to several workspaces: pools that are bound to some, and TensorBoards of experiments elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from sqlalchemy import insert

from libs.db.engine import Connection
from libs.db.tables.workspaces import pool_bindings
from libs.ids import new_uuid
from tests.builders import insert_experiment, insert_interactive, insert_project, insert_trial, insert_workspace
from tests.integration.api.access.persons import Persons, api_with
from tests.integration.api.world import World, two_nodes

VIEWER = 4


@pytest.fixture(scope="module")
def rbac(world: World) -> Iterator[Persons]:
    world.publish(two_nodes())
    with ExitStack() as stack, api_with(world, "rbac") as api:
        yield Persons(world, api, stack)


def test_pools_of_workspaces_that_nobody_shows_are_not_listed(rbac: Persons) -> None:
    async def work(connection: Connection) -> tuple[int, int]:
        one, other = [await insert_workspace(connection, name=f"pools {n}") for n in range(2)]
        await connection.execute(insert(pool_bindings).values(workspace_id=one, pool="gpus"))
        return one, other

    one, other = rbac.world.in_database(work)

    def pools(name: str) -> tuple[list[str], int]:
        reply = rbac.clients[name].get("/api/v1/resource-pools").json()
        return [pool["name"] for pool in reply["resourcePools"]], reply["pagination"]["total"]

    rbac.add("pools-none")
    rbac.add("pools-other")
    rbac.add("pools-one")
    rbac.give("pools-other", VIEWER, other)
    rbac.give("pools-one", VIEWER, one)
    for name, seen in (("pools-none", 1), ("pools-other", 1), ("pools-one", 2), ("admin", 2)):
        assert pools(name) == (["cpus", "gpus"][:seen], seen), name
    unbound = rbac.clients["admin"].get("/api/v1/resource-pools?unbound=true").json()["resourcePools"]
    assert [pool["name"] for pool in unbound] == ["cpus"]


@pytest.mark.parametrize("by_trial", [False, True], ids=["experiment", "trial"])
def test_a_tensorboard_is_for_those_who_see_all_that_it_shows(rbac: Persons, by_trial: bool) -> None:
    async def work(connection: Connection) -> tuple[int, int, str]:
        one, other = [await insert_workspace(connection, name=f"boards {by_trial} {n}") for n in range(2)]
        shown = []
        for workspace in (one, other):
            project = await insert_project(connection, workspace_id=workspace, name="p")
            experiment = await insert_experiment(connection, project_id=project, state="COMPLETED")
            trial = await insert_trial(connection, experiment_id=experiment, project_id=project, state="COMPLETED")
            shown.append(trial if by_trial else experiment)
        home = {"workspace_id": one, "owner_id": 1}
        ident = new_uuid()
        ports = [{"service_id": ident, "port": 1, "proxy_tcp": False}]
        of_task = {**home, "task_id": ident, "spec": {"description": "board", "proxy_ports": ports}}
        ids = {"trial_ids" if by_trial else "experiment_ids": shown}
        await insert_interactive(connection, task_type="TENSORBOARD", job=home, task=of_task, **ids)
        return one, other, ident

    one, other, task = rbac.world.in_database(work)
    some, all_ = f"boards-some-{by_trial}", f"boards-all-{by_trial}"
    for name in (some, all_):
        rbac.add(name)
        rbac.give(name, VIEWER, one)
    rbac.give(all_, VIEWER, other)
    for name, sees in ((some, False), (all_, True), ("admin", True)):
        client = rbac.clients[name]
        reply = client.get("/api/v1/tensorboards").json()
        assert (task in {each["id"] for each in reply["tensorboards"]}) is sees
        assert reply["pagination"]["total"] == len(reply["tensorboards"])
        assert (f"{task}.1" in client.get("/api/v1/tasks").json()["allocationIdToSummary"]) is sees
        # It runs nowhere, which only those are told who may know of it.
        assert client.get(f"/proxy/{task}/").status_code == (502 if sees else 404)
        status = 200 if sees else 404
        assert client.get(f"/api/v1/tensorboards/{task}").status_code == status
        assert client.get(f"/api/v1/tasks/{task}/logs").status_code == status


def test_filters_find_for_a_tensorboard_what_its_maker_sees(rbac: Persons) -> None:
    storage = {"type": "shared_fs", "host_path": "/storage"}
    config = {"name": "found for a board", "searcher": {"name": "single", "metric": "loss"}}

    async def work(connection: Connection) -> list[tuple[int, int]]:
        made = []
        for n in range(2):
            workspace = await insert_workspace(connection, name=f"found {n}")
            project = await insert_project(connection, workspace_id=workspace, name="p")
            described = {**config, "checkpoint_storage": storage}
            made.append((workspace, await insert_experiment(connection, project_id=project, config=described)))
        return made

    (mine, shown), (_, hidden) = rbac.world.in_database(work)
    client = rbac.add("finder")
    rbac.give("finder", VIEWER, mine)

    def launch(who: httpx.Client, **filters: Any) -> httpx.Response:
        return who.post("/api/v1/tensorboards", json={"workspaceId": mine, "filters": filters})

    answer = launch(client, name=config["name"])
    assert answer.status_code == 200, answer.text
    board = answer.json()["tensorboard"]
    assert board["experimentIds"] == [shown]
    assert client.get(f"/api/v1/tensorboards/{board['id']}").status_code == 200
    nothing = launch(client, name=config["name"], excludedExperimentIds=[shown])
    assert (nothing.status_code, "no experiments found" in nothing.text) == (400, True)
    everything = launch(rbac.clients["admin"], name=config["name"])
    assert everything.json()["tensorboard"]["experimentIds"] == [shown, hidden]
