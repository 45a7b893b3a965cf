"""Every list that is ordered by what people wrote has it in natural order, in both directions and over pages."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, update

from libs.db.engine import Connection
from libs.db.tables.experiments import experiments
from libs.db.tables.models import models
from libs.db.tables.templates import templates
from libs.db.tables.users import users
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from tests.builders import (
    insert_experiment,
    insert_interactive,
    insert_project,
    insert_trial,
    insert_user_session,
    insert_workspace,
)
from tests.harness import NatsServer
from tests.harness.containers import ContainerNats
from tests.integration.api.world import World, new_world

NAMES = ["a", "b", "C", "run 9", "Run 10", "run 100", "Ä 2", "ä 11"]
AS_GIVEN = [NAMES[place] for place in (5, 2, 6, 0, 4, 7, 3, 1)]
POOLS = ["pool-9", "Pool-10", "pool-11"]
CLUSTER = """
cluster_name: ordered
resource_manager: {type: process, default_compute_resource_pool: pool-9, default_aux_resource_pool: pool-9}
resource_pools: [{pool_name: pool-11}, {pool_name: Pool-10}, {pool_name: pool-9}]
checkpoint_storage: {type: shared_fs, host_path: /tmp}
"""
NODES = ["node-2", "Node-9", "node-10"]
FAR = datetime(2100, 1, 1, tzinfo=UTC)


def _packed() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in AS_GIVEN:
            archive.addfile(tarfile.TarInfo(name))
    return packed.getvalue()


TGZ = _packed()


@pytest.fixture(scope="module")
def world(
    database_url: str, nats_server: NatsServer | ContainerNats, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("ordered")
    with new_world(directory, database_url=database_url, bus_url=nats_server.url, cluster=CLUSTER) as world:
        nodes = tuple(NodeCapacity(name=n, slot_type="cuda", devices=(Device(id="000"),)) for n in reversed(NODES))
        world.in_database(_fill)
        world.publish(
            PoolCapacity(pool="pool-9", backend="process", slot_type="cuda", max_slots_per_pod=1, nodes=nodes)
        )
        yield world


async def _fill(connection: Connection) -> None:
    """What has names, in another order than theirs."""
    place = await insert_workspace(connection, name="place")
    project = await insert_project(connection, workspace_id=place, name="project", key="ORD")
    for number, name in enumerate(AS_GIVEN):
        workspace = await insert_workspace(connection, name=f"w {name}")
        await insert_project(connection, workspace_id=workspace, name=f"p {name}", description=name)
        await connection.execute(insert(users).values(username=f"u {name}", display_name=name))
        of_model = {"name": f"m {name}", "description": name, "labels": [name]}
        await connection.execute(insert(models).values(**of_model, owner_id=1, workspace_id=workspace))
        await connection.execute(insert(templates).values(name=f"t {name}"))
        await insert_user_session(connection, token_type="ACCESS", description=name, expires_at=FAR)
        await insert_interactive(connection, description=name, task={"workspace_id": place})
        experiment = await insert_experiment(
            connection, project_id=project, state="COMPLETED", tgz=TGZ, config=_config(name), external_id=name
        )
        trial = await insert_trial(
            connection,
            experiment_id=experiment,
            project_id=project,
            local_id=12 - number,
            external_id=name,
            hparams={name: 1},
            metadata={"text": name},
            summary_metrics={"avg_metrics": {name: {"type": "string", "last": "x"}}},
        )
        best = update(experiments).where(experiments.c.id == experiment).values(best_trial_id=trial)
        await connection.execute(best)


def _config(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": name,
        "labels": [name],
        "searcher": {"name": "single", "metric": name},
        "resources": {"resource_pool": name},
        "hyperparameters": {name: {"type": "const", "val": 1}},
    }


@pytest.mark.parametrize(
    ("path", "key", "by", "shown"),
    [
        ("workspaces", "workspaces", "NAME", "name"),
        ("workspaces/0/projects", "projects", "NAME", "name"),
        ("workspaces/0/projects", "projects", "DESCRIPTION", "description"),
        ("users", "users", "USER_NAME", "username"),
        ("users", "users", "DISPLAY_NAME", "displayName"),
        ("users", "users", "NAME", "displayName"),
        ("models", "models", "NAME", "name"),
        ("models", "models", "DESCRIPTION", "description"),
        ("models", "models", "WORKSPACE", "description"),
        ("templates", "templates", "", "name"),
        ("tokens", "tokenInfo", "DESCRIPTION", "description"),
        ("commands", "commands", "DESCRIPTION", "description"),
        ("experiments", "experiments", "NAME", "name"),
        ("experiments", "experiments", "DESCRIPTION", "description"),
        ("experiments", "experiments", "RESOURCE_POOL", "resourcePool"),
    ],
)
def test_lists(admin: httpx.Client, path: str, key: str, by: str, shown: str) -> None:
    def page(direction: str, **limits: int) -> dict[str, Any]:
        query = {"orderBy": f"ORDER_BY_{direction}", **({"sortBy": f"SORT_BY_{by}"} if by else {}), **limits}
        reply = admin.get(f"/api/v1/{path}", params=query)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    def ours(*pages: dict[str, Any]) -> list[str]:
        given = [one[shown] for page in pages for one in page[key]]
        return [name for each in given if (name := each if each in NAMES else each[2:]) in NAMES]

    assert ours(page("ASC")) == NAMES
    everything = page("DESC")
    assert ours(everything) == NAMES[::-1]
    starts = range(0, everything["pagination"]["total"], 3)
    assert ours(*(page("DESC", offset=start, limit=3) for start in starts)) == NAMES[::-1]


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        (
            "experiments-search",
            "name description tags searcherMetric resourcePool externalExperimentId externalTrialId",
        ),
        (
            "runs",
            "experimentName experimentDescription tags searcherMetric resourcePool externalExperimentId externalRunId",
        ),
    ],
)
def test_searches(admin: httpx.Client, path: str, columns: str) -> None:
    for column in columns.split():
        for direction, expected in (("asc", NAMES), ("desc", NAMES[::-1])):
            reply = admin.post(f"/api/v1/{path}", json={"sort": f"{column}={direction}"})
            rows = reply.json()["experiments" if path != "runs" else "runs"]
            assert [row["experiment"]["description"] for row in rows] == expected, column


def test_runs_are_ordered_by_the_number_in_their_address(admin: httpx.Client) -> None:
    rows = admin.post("/api/v1/runs", json={"sort": "localId=asc"}).json()["runs"]
    assert [row["localId"] for row in rows] == [f"ORD-{number}" for number in range(5, 13)]


def test_labels_metrics_columns_values_and_files(admin: httpx.Client) -> None:
    def got(path: str, **query: Any) -> Any:
        reply = admin.get(f"/api/v1/{path}", params=query)
        assert reply.status_code == 200, reply.text
        return reply.json()

    experiment = got("experiments", sortBy="SORT_BY_ID")["experiments"][0]
    assert got("experiment/labels")["labels"] == NAMES
    assert got("model/labels")["labels"] == NAMES
    for table in ("EXPERIMENT", "RUN"):
        columns = got(f"projects/{experiment['projectId']}/columns", tableType=f"TABLE_TYPE_{table}")["columns"]
        found = [column["column"] for column in columns]
        assert [name for name in found if name.startswith("hp.")] == [f"hp.{name}" for name in NAMES], table
        assert [name for name in found if name.startswith("training.")] == [f"training.{name}.last" for name in NAMES]
    values = got(f"projects/{experiment['projectId']}/metadata/text")
    assert values["values"] == NAMES
    assert [file["name"] for file in got(f"experiments/{experiment['id']}/file_tree")["files"]] == NAMES


def test_pools_and_nodes(admin: httpx.Client) -> None:
    def got(path: str) -> Any:
        return admin.get(f"/api/v1/{path}").json()

    assert [pool["name"] for pool in got("resource-pools")["resourcePools"]] == POOLS
    assert got("workspaces/1/available-resource-pools")["resourcePools"] == POOLS
    assert [each["resourcePool"] for each in got("job-queues/stats")["results"]] == POOLS
    assert [agent["id"] for agent in got("agents")["agents"]] == NODES
