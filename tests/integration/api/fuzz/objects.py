"""Some of every kind, so that requests with their ids are about something."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from sqlalchemy import func, select, text

from libs.db.engine import Connection
from libs.db.tables.cluster import audit_records
from tests.builders import (
    insert_allocation,
    insert_checkpoint,
    insert_experiment,
    insert_generic_task,
    insert_job,
    insert_metrics,
    insert_notebook,
    insert_task,
    insert_trial,
)
from tests.harness.api import ApiProcess
from tests.integration.api.world import World, two_nodes

CONFIG = {
    "name": "fuzz",
    "entrypoint": "true",
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
    "resources": {"slots_per_trial": 1, "resource_pool": "gpus", "priority": 42, "weight": 1, "max_slots": None},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp", "save_trial_latest": 1},
    "hyperparameters": {"x": {"type": "int", "minval": 1, "maxval": 9}},
}


KEPT, ALL = 2, 12
"""Of that many of every kind the first two are never named by a request that deletes."""
CLUSTER_ADMIN = 1
CALLER = 70_000_001
"""A number that is in no other one, so that hooks.py finds it however it is written."""


@dataclass(frozen=True)
class Objects:
    """token  of an administrator who is nobody's but the requests'; texts  ids that are no numbers, by parameter"""

    caller: int
    token: str
    texts: Mapping[str, str]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def for_hooks(self) -> dict[str, Any]:
        return {"caller": self.caller, "texts": dict(self.texts), "kept": KEPT, "all": ALL}


def make_objects(world: World, api: ApiProcess) -> Objects:
    """ALL of those that have numbers, so that these begin with 1, and of the others one to be named."""
    world.publish(two_nodes())
    texts: dict[str, str] = world.in_database(_rows)
    world.in_database(_number_caller)
    password = secrets.token_hex(8)
    with api.client() as admin:
        for name in ("first", *(f"n{number}" for number in range(2, ALL + 1))):
            workspace = _done(admin.post("/api/v1/workspaces", json={"name": name}))["workspace"]["id"]
            _done(admin.post(f"/api/v1/workspaces/{workspace}/projects", json={"name": name}))
            _done(admin.post("/api/v1/groups", json={"name": name, "addUsers": [2]}))
            _done(admin.post("/api/v1/models", json={"name": name, "workspaceId": workspace}))
            _done(
                admin.post(
                    f"/api/v1/templates/{name}", json={"config": {"description": name}, "workspaceId": workspace}
                )
            )
            webhook = {"name": name, "url": "http://127.0.0.1:9/", "webhookType": "WEBHOOK_TYPE_DEFAULT"}
            trigger = {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}
            _done(admin.post("/api/v1/webhooks", json={**webhook, "triggers": [trigger]}))
        version = {"checkpointUuid": texts["checkpointUuid"]}
        _done(admin.post("/api/v1/models/first/versions", json=version))
        user = {"username": "requests", "active": True, "admin": True}
        made = _done(admin.post("/api/v1/users", json={"user": user, "password": password, "isHashed": False}))
        role = {"userId": made["user"]["id"], "roleAssignment": {"role": {"roleId": CLUSTER_ADMIN}}}
        _done(admin.post("/api/v1/roles/add-assignments", json={"userRoleAssignments": [role]}))
    names = {"modelName": "first", "name": "first", "resourcePoolName": "gpus", "agentId": "a", "slotId": "000"}
    kinds = {"workloadType": "EXPERIMENT", "username": "determined", "key": "x", "label": "l"}
    return Objects(made["user"]["id"], api.token("requests", password), {**texts, **names, **kinds})


def changes_of_users(world: World) -> str:
    """What the requests have changed of users, the latest last."""
    return "\n".join(world.in_database(_changes_of_users))


async def _changes_of_users(connection: Connection) -> list[str]:
    table = audit_records.c
    query = select(table.action, table.target, table.changed).where(table.action.contains("/users")).order_by(table.id)
    return [" ".join(map(str, row)) for row in await connection.execute(query)][-50:]


async def _number_caller(connection: Connection) -> None:
    await connection.execute(text(f"ALTER TABLE users ALTER COLUMN id RESTART WITH {CALLER}"))


def _done(reply: httpx.Response) -> dict[str, Any]:
    assert reply.status_code == 200, f"{reply.url}: {reply.text}"
    found: dict[str, Any] = reply.json()
    return found


async def _rows(connection: Connection) -> dict[str, str]:
    texts: dict[str, str] = {}
    for _ in range(ALL):
        job = await insert_job(connection, pool="gpus", priority=42)
        row = {"config": CONFIG, "job_id": job, "external_id": f"external-{job}"}
        experiment = await insert_experiment(connection, **row)
        trial = await insert_trial(connection, experiment_id=experiment)
        task = await insert_task(connection, trial_id=trial, job_id=job)
        live = {"state": "RUNNING", "pool": "gpus", "assigned_at": func.now(), "start_time": func.now()}
        allocation = await insert_allocation(connection, task_id=task, job_id=job, **live)
        checkpoint = await insert_checkpoint(connection, task_id=task)
        await insert_metrics(connection, trial_id=trial, step=1, values={"loss": 0.5})
        texts |= {
            "jobId": job,
            "taskId": task,
            "allocationId": allocation,
            "resourcesId": allocation,
            "checkpointUuid": checkpoint,
            "uuid": checkpoint,
            "externalExperimentId": f"external-{job}",
            "notebookId": (await insert_notebook(connection, job={"pool": "gpus"})).rpartition(".")[0],
        }
    await insert_generic_task(connection)
    return texts
