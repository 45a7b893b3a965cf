"""Checkpoints that are versions of models: their files stay (docs/reference/platform.md 10)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.checkpoints import checkpoint_gc_requests, checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.models import model_versions, models
from libs.db.tables.tasks import allocations, tasks
from libs.errors import FailedPrecondition
from libs.natural_order.sql import natural
from libs.states.experiment import ExperimentState
from libs.tasks.checkpoint_gc import deleted_by
from libs.tasks.stored import StoredTask


def is_registered() -> ColumnElement[bool]:
    """Whether a row of ``checkpoints`` is a version of some model."""
    return exists().where(model_versions.c.checkpoint_uuid == checkpoints.c.uuid)


async def check_not_registered(connection: AsyncConnection, uuids: Iterable[str], what: str) -> None:
    """Raises FailedPrecondition, with what cannot be done to them, when any of these checkpoints is registered."""
    mine = any_of(model_versions.c.checkpoint_uuid, uuids)
    query = select(model_versions.c.checkpoint_uuid).where(mine).distinct()
    registered = sorted((await connection.execute(query)).scalars())
    if registered:
        raise FailedPrecondition(
            "this subset of checkpoints provided are in the model registry and cannot be "
            f"{what}: {', '.join(registered)}"
        )


async def registered_in(connection: AsyncConnection, experiment_id: int) -> str | None:
    """Why an experiment cannot be deleted, if it is because versions of models come from it."""
    query = (
        select(models.c.name, model_versions.c.version)
        .join(model_versions, model_versions.c.model_id == models.c.id)
        .join(checkpoints, checkpoints.c.uuid == model_versions.c.checkpoint_uuid)
        .where(checkpoints.c.experiment_id == experiment_id)
        .order_by(natural(models.c.name), model_versions.c.version)
        .limit(_MOST_NAMED + 1)
    )
    found = [f'version {row.version} of model "{row.name}"' for row in await connection.execute(query)]
    if not found:
        return None
    named = ", ".join(found[:_MOST_NAMED])
    return f"checkpoints are registered as model versions: {named}{' and more' * (len(found) > _MOST_NAMED)}"


async def is_about_to_go(connection: AsyncConnection, uuid: str, experiment_id: int | None) -> bool:
    """Whether the deletion of files of a checkpoint was asked for, and is not over. Its experiment is locked."""
    deleting = select(experiments.c.id).where(
        experiments.c.id == experiment_id, experiments.c.state == ExperimentState.DELETING
    )
    asked = select(checkpoint_gc_requests.c.id).where(
        checkpoint_gc_requests.c.experiment_id == experiment_id,
        checkpoint_gc_requests.c.uuids.contains([uuid]),
        checkpoint_gc_requests.c.globs != [],
    )
    for query in (deleting, asked):
        if await connection.scalar(query.limit(1)) is not None:
            return True
    running = (
        select(tasks.c.spec)
        .join(allocations, allocations.c.task_id == tasks.c.task_id)
        .where(
            tasks.c.experiment_id == experiment_id,
            tasks.c.task_type == "CHECKPOINT_GC",
            allocations.c.released_at.is_(None),
        )
    )
    specs = (await connection.execute(running)).scalars().all()
    return any(spec and uuid in deleted_by(msgspec.convert(spec, StoredTask)) for spec in specs)


_MOST_NAMED = 5
