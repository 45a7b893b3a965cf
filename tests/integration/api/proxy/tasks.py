"""Tasks whose servers are in the process of the tests: rows as the services would have written them."""

from __future__ import annotations

from typing import Any

import msgspec

from libs.db.engine import Connection
from libs.events.observations import ObservedPod
from libs.events.orders import ProxyPort
from libs.ids import new_uuid
from libs.tasks.stored import StoredTask, to_document
from tests.builders import insert_allocation, insert_experiment, insert_interactive, insert_job, insert_task
from tests.integration.api.world import World

HERE = "127.0.0.1"
NOWHERE = {"proxy_address": None, "pods": []}
"""Columns of an allocation of which nothing has been seen yet."""


def running(address: str | None = HERE, *, seen: tuple[str, ...] = (HERE,)) -> dict[str, Any]:
    """Columns of an allocation that has reported an address, and whose pod was seen at others."""
    pods = [ObservedPod(name="pod", state="RUNNING", addresses=seen)]
    return {"state": "RUNNING", "proxy_address": address, "pods": msgspec.to_builtins(pods)}


def insert_service(
    world: World,
    port: int,
    *,
    task_type: str = "NOTEBOOK",
    allocation: dict[str, Any] | None = None,
    server_token: str = "",
    **options: bool,
) -> str:
    """A task with one port, its default service; returns the id of both. ``options`` as of ProxyPort."""
    task_id = new_uuid()
    variables = (("DET_NOTEBOOK_TOKEN", server_token),) if server_token else ()
    ports = (ProxyPort(service_id=task_id, port=port, **options),)
    spec = to_document(StoredTask(description="a task", proxy_ports=ports, extra_environment=variables))

    async def insert(connection: Connection) -> None:
        await insert_interactive(
            connection,
            task_type=task_type,
            task={"task_id": task_id, "spec": spec},
            allocation=running() if allocation is None else allocation,
        )

    world.in_database(insert)
    return task_id


def insert_trial_with_ports(world: World, ports: list[dict[str, Any]], allocation: dict[str, Any] | None = None) -> str:
    """A trial of an experiment with ``environment.proxy_ports``; returns the id of its task."""
    task_id = f"1.{new_uuid()}"

    async def insert(connection: Connection) -> None:
        job_id = await insert_job(connection)
        config = {"environment": {"proxy_ports": ports}}
        experiment_id = await insert_experiment(connection, job_id=job_id, config=config)
        await insert_task(connection, task_id=task_id, job_id=job_id, experiment_id=experiment_id)
        columns = running() if allocation is None else allocation
        await insert_allocation(connection, task_id=task_id, job_id=job_id, **columns)

    world.in_database(insert)
    return task_id
