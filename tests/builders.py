"""Inserts rows that services would have written: one line per object, whose usual columns a test need not name.

Every function takes the connection of the test's transaction, and further columns by their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from sqlalchemy import Table, func, insert

from libs.db.engine import Connection
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments, model_definitions
from libs.db.tables.interactive import interactive_tasks
from libs.db.tables.metrics import metrics
from libs.db.tables.tasks import allocations, generic_tasks, jobs, tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.db.tables.users import allocation_sessions, user_sessions
from libs.db.tables.workspaces import project_keys, projects, workspaces
from libs.ids import new_uuid
from libs.tasks.stored import StoredTask, to_document
from libs.tokens import digest, new_token
from services.api.contexts.pack import pack_context

OWNER = 1
"""``admin``, whom every new database has; 2 is ``determined``."""
PROJECT = 1
"""The one that every new database has."""
_keys = count()
"""Of projects: a test that makes some hundred of them would now and then draw one twice."""
NO_FILES = pack_context(())
"""The model definition of an experiment without any."""


async def insert_workspace(connection: Connection, *, name: str, **columns: Any) -> int:
    """A workspace; returns its id."""
    return await _id_of_new(connection, workspaces, {"name": name, "owner_id": OWNER, **columns})


async def insert_project(connection: Connection, *, workspace_id: int, name: str, **columns: Any) -> int:
    """A project of a workspace, with its key for good; returns its id."""
    row = {"workspace_id": workspace_id, "name": name, "key": f"T{next(_keys):04X}", "owner_id": OWNER, **columns}
    ident = await _id_of_new(connection, projects, row)
    await connection.execute(insert(project_keys).values(key=row["key"], project_id=ident))
    return ident


async def insert_job(connection: Connection, *, job_type: str = "EXPERIMENT", **columns: Any) -> str:
    """What a user has submitted to the pool ``default``; returns its id."""
    row = {
        "job_id": new_uuid(),
        "job_type": job_type,
        "owner_id": OWNER,
        "pool": "default",
        "submitted_at": func.now(),
        **columns,
    }
    await connection.execute(insert(jobs).values(row))
    return str(row["job_id"])


async def insert_experiment(connection: Connection, *, tgz: bytes = NO_FILES, **columns: Any) -> int:
    """An active experiment with its model definition, without its job; returns its id."""
    row = {
        "state": "ACTIVE",
        "config": {},
        "original_config": "",
        "owner_id": OWNER,
        "project_id": PROJECT,
        "job_id": new_uuid(),
        "start_time": func.now(),
        **columns,
    }
    ident = await _id_of_new(connection, experiments, row)
    definition = {"experiment_id": ident, "tgz": tgz, "size_bytes": len(tgz)}
    await connection.execute(insert(model_definitions).values(definition))
    return ident


async def insert_trial(connection: Connection, *, experiment_id: int, **columns: Any) -> int:
    """An active trial without any task; returns its id."""
    row = {
        "experiment_id": experiment_id,
        "project_id": PROJECT,
        "request_id": new_uuid(),
        "state": "ACTIVE",
        "start_time": func.now(),
        **columns,
    }
    return await _id_of_new(connection, trials, row)


async def insert_task(
    connection: Connection,
    *,
    task_type: str = "TRIAL",
    trial_id: int | None = None,
    position: int = 0,
    **columns: Any,
) -> str:
    """A task, of a trial if there is one; returns its id."""
    row = {
        "task_id": new_uuid(),
        "task_type": task_type,
        "owner_id": OWNER,
        "start_time": func.now(),
        **columns,
    }
    await connection.execute(insert(tasks).values(row))
    if trial_id is not None:
        of_trial = {"trial_id": trial_id, "position": position, "task_id": row["task_id"]}
        await connection.execute(insert(trial_tasks).values(of_trial))
    return str(row["task_id"])


async def insert_allocation(connection: Connection, *, task_id: str, run: int = 1, **columns: Any) -> str:
    """An attempt to run a task on one slot of the pool ``default``, which waits for it; returns its id."""
    row = {
        "allocation_id": f"{task_id}.{run}",
        "task_id": task_id,
        "job_id": "job",
        "name": "Trial 1 (Experiment 1)",
        "pool": "default",
        "slots": 1,
        "state": "PENDING",
        "requested_at": func.now(),
        **columns,
    }
    await connection.execute(insert(allocations).values(row))
    return str(row["allocation_id"])


async def insert_interactive(
    connection: Connection,
    *,
    task_type: str = "COMMAND",
    job: Mapping[str, Any] | None = None,
    task: Mapping[str, Any] | None = None,
    allocation: Mapping[str, Any] | None = None,
    **columns: Any,
) -> str:
    """A notebook, TensorBoard, shell or command that waits in a pool; returns the id of its allocation.

    job, task, allocation  columns of these rows that should not be the usual ones
    """
    description = columns.get("description", task_type.lower())
    of_job = {"job_type": task_type, **(job or {})}
    job_id = await insert_job(connection, **of_job)
    spec = to_document(StoredTask(description=description))
    of_task = {"task_type": task_type, "job_id": job_id, "spec": spec, **(task or {})}
    task_id = await insert_task(connection, **of_task)
    row = {"task_id": task_id, "description": description, "config": {"description": description}, **columns}
    await connection.execute(insert(interactive_tasks).values(row))
    pool = of_job.get("pool", "default")
    attempt = {"job_id": job_id, "name": description, "pool": pool, **(allocation or {})}
    return await insert_allocation(connection, task_id=task_id, **attempt)


async def insert_notebook(
    connection: Connection, *, job: Mapping[str, Any], task: Mapping[str, Any] | None = None
) -> str:
    """A notebook that waits in a pool; returns the id of its allocation."""
    return await insert_interactive(connection, task_type="NOTEBOOK", job=job, task=task)


async def insert_generic_task(
    connection: Connection,
    *,
    state: str = "ACTIVE",
    parent: str | None = None,
    root: str | None = None,
    no_pause: bool | None = False,
    allocation: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    **task: Any,
) -> str:
    """A generic task with its job, and the allocation that it waits with unless it is at rest; returns its id.

    root  of the tree, where there is one above ``parent``
    """
    job_id = await insert_job(connection, job_type="GENERIC")
    spec = {"description": "generic-task", "argv": ["true"]}
    task_id = await insert_task(connection, task_type="GENERIC", job_id=job_id, **{"spec": spec, **task})
    row = {
        "task_id": task_id,
        "root_id": root or parent or task_id,
        "parent_id": parent,
        "no_pause": no_pause,
        "state": state,
        "config": config or {"entrypoint": ["true"]},
    }
    await connection.execute(insert(generic_tasks).values(row))
    if state == "ACTIVE" or allocation:
        usual = {"job_id": job_id, "name": f"Generic Task {task_id}", "slots": 0, **(allocation or {})}
        await insert_allocation(connection, task_id=task_id, **usual)
    return task_id


async def insert_allocation_session(connection: Connection, *, allocation_id: str, **columns: Any) -> str:
    """The token that the pods of an allocation have."""
    token = new_token()
    row = {"allocation_id": allocation_id, "owner_id": OWNER, "token_hash": digest(token), **columns}
    await connection.execute(insert(allocation_sessions).values(row))
    return token


async def insert_user_session(connection: Connection, *, token_type: str = "LOGIN", **columns: Any) -> str:
    """The token of a user who has logged in."""
    token = new_token()
    row = {"user_id": OWNER, "token_hash": digest(token), "token_type": token_type, **columns}
    await connection.execute(insert(user_sessions).values(row))
    return token


async def insert_checkpoint(connection: Connection, *, task_id: str = "task", **columns: Any) -> str:
    """A checkpoint that is complete; returns its UUID."""
    row = {"uuid": new_uuid(), "task_id": task_id, "report_time": func.now(), "state": "COMPLETED", **columns}
    await connection.execute(insert(checkpoints).values(row))
    return str(row["uuid"])


async def insert_metrics(
    connection: Connection,
    *,
    trial_id: int,
    step: int | None,
    values: Mapping[str, Any],
    group: str = "validation",
    **columns: Any,
) -> int:
    """A report of a trial's first run at a step; returns its id."""
    key = "validation_metrics" if group == "validation" else "avg_metrics"
    row = {
        "trial_id": trial_id,
        "trial_run_id": 1,
        "metric_group": group,
        "kind": group.upper(),
        "total_batches": step,
        "end_time": func.now(),
        "metrics": {key: dict(values)},
        **columns,
    }
    return await _id_of_new(connection, metrics, row)


async def _id_of_new(connection: Connection, table: Table, row: Mapping[str, Any]) -> int:
    inserted = await connection.execute(insert(table).values(row).returning(table.c.id))
    return int(inserted.scalar_one())
