"""What is stored of a generic task (docs/reference/tasks-and-cli.md 6)."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.secrets import mask_secrets
from libs.db.tables.tasks import generic_tasks, tasks
from libs.errors import InvalidRequest, NotFound


class StoredGenericTask(msgspec.Struct, frozen=True, kw_only=True):
    task_id: str
    owner_id: int
    config: dict[str, Any]
    context_tgz: bytes


async def load_config(connection: AsyncConnection, task_id: str, *, reader_id: int) -> str:
    """The configuration as JSON text, as it may be shown to a user.

    Raises NotFound, and InvalidRequest for a task of another type.
    """
    found = await load_generic_task(connection, task_id)
    return config_text(found.config, to_owner=found.owner_id == reader_id)


async def load_generic_task(connection: AsyncConnection, task_id: str) -> StoredGenericTask:
    """The same with the files that it starts with; raises the same."""
    query = (
        select(tasks.c.owner_id, tasks.c.context_tgz, generic_tasks.c.config)
        .outerjoin(generic_tasks, generic_tasks.c.task_id == tasks.c.task_id)
        .where(tasks.c.task_id == task_id)
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise NotFound("task", task_id)
    if row.config is None:
        raise not_generic(task_id)
    return StoredGenericTask(
        task_id=task_id, owner_id=row.owner_id, config=row.config, context_tgz=row.context_tgz or b""
    )


async def ids_above(connection: AsyncConnection, task_id: str) -> list[str]:
    """The tasks that started this one, as far as they are still there: its parent first, its root last."""
    mine = select(generic_tasks.c.root_id).where(generic_tasks.c.task_id == task_id).scalar_subquery()
    query = select(generic_tasks.c.task_id, generic_tasks.c.parent_id).where(generic_tasks.c.root_id == mine)
    parents: dict[str, str | None] = {row.task_id: row.parent_id for row in await connection.execute(query)}
    above: list[str] = []
    ident = parents.get(task_id)
    while ident is not None and ident in parents:
        above.append(ident)
        ident = parents[ident]
    return above


def not_generic(task_id: str) -> InvalidRequest:
    return InvalidRequest(f"task {task_id} is of another type (make sure task is of type GENERIC)")


def config_text(config: dict[str, Any], *, to_owner: bool = False) -> str:
    """JSON text, without the secrets of somebody else."""
    return msgspec.json.encode(mask_secrets(config, to_owner=to_owner), order="deterministic").decode()
