"""The storage that holds a checkpoint: the one in force when it was reported (docs/reference/experiments.md 10.1)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.checkpoints import checkpoints, storage_backends
from libs.db.tables.experiments import experiments
from libs.errors import FailedPrecondition, NotFound


async def storage_of(connection: AsyncConnection, uuid: str) -> dict[str, Any]:
    """The checkpoint_storage section. Raises NotFound, and FailedPrecondition when its files are deleted."""
    row = (
        await connection.execute(
            select(
                checkpoints.c.state,
                storage_backends.c.config.label("reported"),
                experiments.c.config["checkpoint_storage"].label("of_experiment"),
            )
            .select_from(checkpoints)
            .outerjoin(storage_backends, storage_backends.c.id == checkpoints.c.storage_id)
            .outerjoin(experiments, experiments.c.id == checkpoints.c.experiment_id)
            .where(checkpoints.c.uuid == uuid)
        )
    ).one_or_none()
    storage = None if row is None else row.reported or row.of_experiment
    if row is None or storage is None:
        raise NotFound("checkpoint", uuid)
    if row.state == "DELETED":
        raise FailedPrecondition(f"the files of checkpoint '{uuid}' are deleted")
    if not isinstance(storage, dict):
        raise FailedPrecondition(f"checkpoint_storage in the configuration of checkpoint '{uuid}' is not an object")
    return storage
