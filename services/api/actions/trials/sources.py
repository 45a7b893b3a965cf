"""The checkpoint or model version that a trial works with, as its code reports it
(docs/reference/harness-protocol.md 11)."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.checkpoints import checkpoints, trial_sources
from libs.db.tables.models import model_versions
from libs.db.tables.trials import trials
from libs.errors import InvalidRequest, NotFound


async def report_source(
    connection: AsyncConnection,
    *,
    trial_id: int,
    checkpoint_uuid: str,
    kind: str,
    model_id: int | None,
    model_version: int | None,
) -> None:
    """Link a trial with a checkpoint; the last report about the two counts.

    model_id, model_version  the version of a model that the checkpoint is, when the trial works with it as such
    Raises NotFound for what is not there, InvalidRequest for a version that is another checkpoint.
    """
    if await connection.scalar(select(trials.c.id).where(trials.c.id == trial_id)) is None:
        raise NotFound("trial", trial_id)
    if await connection.scalar(select(checkpoints.c.uuid).where(checkpoints.c.uuid == checkpoint_uuid)) is None:
        raise NotFound("checkpoint", checkpoint_uuid)
    if model_id is not None or model_version is not None:
        await _check_version(connection, checkpoint_uuid, model_id, model_version)
    values = {"trial_source_info_type": kind, "model_id": model_id, "model_version": model_version}
    await connection.execute(
        insert(trial_sources)
        .values(trial_id=trial_id, checkpoint_uuid=checkpoint_uuid, **values)
        .on_conflict_do_update(index_elements=["trial_id", "checkpoint_uuid"], set_=values)
    )


async def _check_version(
    connection: AsyncConnection, checkpoint_uuid: str, model_id: int | None, number: int | None
) -> None:
    if model_id is None or number is None:
        raise InvalidRequest("modelId and modelVersion must both be given, or neither")
    registered = await connection.scalar(
        select(model_versions.c.checkpoint_uuid).where(
            model_versions.c.model_id == model_id, model_versions.c.version == number
        )
    )
    if registered is None:
        raise NotFound("model version", f"{model_id}/{number}")
    if registered != checkpoint_uuid:
        raise InvalidRequest(f"version {number} of model {model_id} is checkpoint '{registered}', not this one")
