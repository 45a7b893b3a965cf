"""The uploaded files of an experiment, packed."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiments, model_definitions
from libs.errors import NotFound


async def load_model_definition(connection: AsyncConnection, experiment_id: int) -> tuple[str, bytes]:
    """Name of the experiment, and its tar.gz. Raises NotFound."""
    row = (
        await connection.execute(
            select(experiments.c.config["name"].astext.label("name"), model_definitions.c.tgz)
            .join(model_definitions, model_definitions.c.experiment_id == experiments.c.id)
            .where(experiments.c.id == experiment_id)
        )
    ).one_or_none()
    if row is None:
        raise NotFound("experiment", experiment_id)
    return row.name or "", row.tgz
