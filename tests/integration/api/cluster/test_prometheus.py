"""What dashboards of Prometheus join with the metrics of GPUs and containers."""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from libs.db.engine import Connection
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations
from libs.events.observations import ObservedPod
from tests.builders import (
    insert_allocation,
    insert_experiment,
    insert_job,
    insert_project,
    insert_task,
    insert_workspace,
)
from tests.harness.api import ApiProcess
from tests.harness.waiting import wait_until
from tests.integration.api.access.persons import Persons, api_with
from tests.integration.api.world import NOW, World, two_nodes

METRICS = "/prom/det-state-metrics"
TARGETS = "/prom/det-http-sd-config"
VIEWER = 4
NAMES = {
    "det_container_id_allocation_id",
    "det_allocation_id_task_id_task_actor",
    "det_container_id_runtime_container_id",
    "det_job_id_experiment_id",
    "det_experiment_id_label",
    "det_gpu_uuid_container_id",
}
GPUS = ("GPU-11111111-aaaa", "GPU-22222222-bbbb")
ODD_LABEL = 'say "hi"\n\\o/'
PODS = (
    ObservedPod(name="pod-0", state="RUNNING", node="a", runtime_id="5f2a"),
    ObservedPod(name="pod-1", state="STARTING", node="b"),
    ObservedPod(name="pod-2", state="TERMINATED", node="b", runtime_id="0b13", exit_code=0),
)

Samples = dict[str, list[dict[str, str]]]
"""Name of a metric -> the labels of its samples."""


class Running(NamedTuple):
    workspace: int
    experiment: str
    job: str
    task: str
    allocation: str


def samples(client: httpx.Client) -> Samples:
    """What a Prometheus reads; all of it are gauges of value 1."""
    reply = client.get(METRICS)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = list(text_string_to_metric_families(reply.text))
    assert {family.type for family in families} == {"gauge"}
    assert {sample.value for family in families for sample in family.samples} <= {1.0}
    return {family.name: [sample.labels for sample in family.samples] for family in families}


@pytest.fixture
def running(world: World, admin: httpx.Client, request: pytest.FixtureRequest) -> Running:
    """A trial that runs in a workspace of its own, whose first container has reported its GPUs."""

    async def work(connection: Connection) -> Running:
        # What other tests have left, and an experiment that has ended with everything of it.
        await connection.execute(update(experiments).values(state="COMPLETED"))
        await connection.execute(update(allocations).values(released_at=NOW))
        workspace = await insert_workspace(connection, name=request.node.name)
        project = await insert_project(connection, workspace_id=workspace, name="p")
        job = await insert_job(connection, pool="gpus", workspace_id=workspace)
        config = {"name": "e", "labels": [ODD_LABEL, "nightly", "nightly"]}
        experiment = await insert_experiment(connection, project_id=project, job_id=job, config=config)
        task = await insert_task(connection, job_id=job, experiment_id=experiment, workspace_id=workspace)
        row = {"job_id": job, "pool": "gpus", "state": "RUNNING", "assigned_at": NOW, "name": "Trial 7 (Experiment 3)"}
        pods = msgspec.to_builtins(PODS)
        allocation = await insert_allocation(connection, task_id=task, num_pods=3, pods=pods, **row)
        return Running(workspace, str(experiment), job, task, allocation)

    running: Running = world.in_database(work)
    # The second report is of the same container; nobody has seen the third one's.
    for container, uuids in (("pod-0", GPUS), ("pod-0", GPUS[:1]), ("gone", ("GPU-33333333",))):
        data = {"containerId": container, "acceleratorType": "cuda", "acceleratorUuids": uuids}
        path = f"/api/v1/allocations/{running.allocation}/acceleratorData"
        reply = admin.post(path, json={"allocationId": running.allocation, "acceleratorData": data})
        assert reply.status_code == 200, reply.text
    return running


def test_ids_lead_from_a_gpu_and_a_container_to_an_experiment(user: httpx.Client, running: Running) -> None:
    found = samples(user)
    assert found == {
        "det_gpu_uuid_container_id": [{"gpu_uuid": uuid, "container_id": "pod-0"} for uuid in GPUS],
        "det_container_id_runtime_container_id": [{"container_runtime_id": "5f2a", "container_id": "pod-0"}],
        "det_container_id_allocation_id": [
            {"container_id": pod, "allocation_id": running.allocation} for pod in ("pod-0", "pod-1")
        ],
        "det_allocation_id_task_id_task_actor": [
            {
                "allocation_id": running.allocation,
                "task_id": running.task,
                "task_actor": "Trial 7 (Experiment 3)",
                "job_id": running.job,
            }
        ],
        "det_job_id_experiment_id": [{"job_id": running.job, "experiment_id": running.experiment}],
        "det_experiment_id_label": [
            {"experiment_id": running.experiment, "label": label} for label in ("nightly", ODD_LABEL)
        ],
    }
    assert found.keys() == NAMES


def test_what_waits_has_no_containers_and_what_has_ended_is_gone(
    world: World, admin: httpx.Client, running: Running
) -> None:
    def change(**values: object) -> None:
        world.in_database(lambda connection: connection.execute(update(allocations).values(**values)))

    change(pods=[])
    found = samples(admin)
    assert len(found["det_allocation_id_task_id_task_actor"]) == 1, "it has its slots, and nobody has seen it yet"
    assert found["det_container_id_allocation_id"] == found["det_gpu_uuid_container_id"] == []
    change(assigned_at=None)
    assert samples(admin)["det_allocation_id_task_id_task_actor"] == []
    assert len(samples(admin)["det_job_id_experiment_id"]) == 1
    world.in_database(lambda connection: connection.execute(update(experiments).values(state="CANCELED")))
    assert samples(admin) == {name: [] for name in NAMES}


def test_everybody_with_a_token_may_ask(api: ApiProcess, running: Running) -> None:
    for path in (METRICS, TARGETS):
        assert httpx.get(api.url + path).status_code == 401


def test_with_roles_everybody_is_told_of_what_they_may_see(world: World, running: Running) -> None:
    with ExitStack() as stack, api_with(world, "rbac") as api:
        rbac = Persons(world, api, stack)
        for name in ("stranger", "viewer"):
            rbac.add(name)
        rbac.give("viewer", VIEWER, running.workspace)
        assert samples(rbac.clients["stranger"]) == {name: [] for name in NAMES}
        assert samples(rbac.clients["viewer"]) == samples(rbac.clients["admin"])
        assert all(samples(rbac.clients["viewer"]).values())


def test_agents_are_found_as_prometheus_asks_for_targets(world: World, user: httpx.Client) -> None:
    world.publish(two_nodes())
    wait_until(lambda: user.get(TARGETS).json(), what="the capacity is seen")
    reply = user.get(TARGETS)
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == [
        {
            "targets": [f"{address}:9400", f"{address}:8080"],
            "labels": {"det_agent_id": name, "det_resource_pool": "gpus"},
        }
        for name, address in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
    ]
