"""Workspaces with one of everything that lists show."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import func, insert

from libs.db.engine import Connection
from libs.db.tables.models import model_versions, models
from libs.db.tables.templates import templates
from libs.db.tables.users import group_members, groups, user_activity
from libs.db.tables.webhooks import webhooks
from tests.builders import (
    insert_checkpoint,
    insert_experiment,
    insert_generic_task,
    insert_interactive,
    insert_job,
    insert_project,
    insert_task,
    insert_trial,
    insert_workspace,
)

RUNNING = {"state": "RUNNING"}


@dataclass(kw_only=True)
class Objects:
    """Ids by kind."""

    by_kind: dict[str, list[int | str]] = field(default_factory=dict)

    def add(self, kind: str, ident: int | str) -> None:
        self.by_kind.setdefault(kind, []).append(ident)

    def of(self, kind: str) -> list[int | str]:
        return self.by_kind[kind]


async def make(connection: Connection, *, count: int, users: list[int]) -> Objects:
    """``count`` workspaces with one of each and a TensorBoard of the neighbour's experiment, and three groups.

    users  who looked at all projects
    """
    objects = Objects()
    for number in range(count):
        await _workspace(connection, objects, number, users)
    for number, experiment in enumerate(objects.of("experiment")):
        workspace = objects.of("workspace")[number - 1]
        home = {"workspace_id": workspace, "owner_id": 1}
        shown = {"experiment_ids": [experiment, objects.of("experiment")[number - 1]]}
        await insert_interactive(
            connection,
            task_type="TENSORBOARD",
            job={**home, "pool": "cpus"},
            task=home,
            allocation=RUNNING,
            **shown,
        )
    for name, kind in (("listed one", "group"), ("listed two", "group"), ("listed of others", "group of others")):
        row = await connection.execute(insert(groups).values(name=name).returning(groups.c.id))
        objects.add(kind, row.scalar_one())
    await connection.execute(insert(group_members).values(group_id=objects.of("group")[0], user_id=2))
    everywhere = {"name": "listed everywhere", "url": "https://example.org", "webhook_type": "DEFAULT"}
    await connection.execute(insert(webhooks).values(everywhere))
    objects.add("user", 2)
    return objects


async def _workspace(connection: Connection, objects: Objects, number: int, users: list[int]) -> None:
    name = f"listed-{number}"
    workspace = await insert_workspace(connection, name=name)
    project = await insert_project(connection, workspace_id=workspace, name="p")
    home = {"workspace_id": workspace, "owner_id": 1}
    config = {
        "name": "e",
        "searcher": {"name": "single", "metric": "loss"},
        "resources": {"resource_pool": "cpus", "slots_per_trial": 1, "priority": 42},
    }
    job = await insert_job(connection, pool="cpus", workspace_id=workspace)
    experiment = await insert_experiment(connection, project_id=project, config=config, job_id=job)
    trial = await insert_trial(connection, experiment_id=experiment, project_id=project)
    task = await insert_task(connection, trial_id=trial, job_id=job, experiment_id=experiment, workspace_id=workspace)
    checkpoint = await insert_checkpoint(connection, task_id=task, trial_id=trial, experiment_id=experiment)
    for kind, allocation in (("COMMAND", {}), ("NOTEBOOK", RUNNING), ("SHELL", {})):
        of_job = {**home, "pool": "cpus"}
        await insert_interactive(connection, task_type=kind, job=of_job, task=home, allocation=allocation)
    await insert_generic_task(connection, **home)
    await connection.execute(insert(templates).values(name=name, config={}, workspace_id=workspace))
    model = insert(models).values(name=name, labels=[name], **home).returning(models.c.id)
    model_id = (await connection.execute(model)).scalar_one()
    version = {"model_id": model_id, "version": 1, "checkpoint_uuid": checkpoint, "owner_id": 1}
    await connection.execute(insert(model_versions).values(version))
    webhook = {"name": name, "url": "https://example.org", "webhook_type": "DEFAULT", "workspace_id": workspace}
    await connection.execute(insert(webhooks).values(webhook))
    for user in users:
        await connection.execute(insert(user_activity).values(user_id=user, project_id=project, seen_at=func.now()))
    for kind_of, ident in (("workspace", workspace), ("experiment", experiment), ("trial", trial), ("model", name)):
        objects.add(kind_of, ident)
