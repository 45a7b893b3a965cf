"""What every new experiment has beside its own row, managed or not: the code it was made from, and its first event."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import model_definitions
from libs.events.changes import ExperimentChanged
from services.api.access.principal import Principal


async def insert_model_definition(connection: AsyncConnection, experiment_id: int, tgz: bytes) -> None:
    await connection.execute(
        insert(model_definitions).values(experiment_id=experiment_id, tgz=tgz, size_bytes=len(tgz))
    )


def created(experiment_id: int, values: dict[str, Any], principal: Principal) -> ExperimentChanged:
    """The event of a row of ``experiments`` that ``values`` have made."""
    return ExperimentChanged(
        experiment_id=experiment_id,
        what="created",
        state=values["state"],
        name=values["config"]["name"],
        job_id=values["job_id"],
        owner=principal.username,
        project_id=values["project_id"],
    )
