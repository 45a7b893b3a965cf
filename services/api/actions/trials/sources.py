"""The checkpoint or model version that a trial works with, as its code reports it
(docs/reference/harness-protocol.md 11)."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.checkpoints import checkpoints, trial_sources
from libs.db.tables.trials import trials
from libs.errors import NotFound


async def report_source(
    connection: AsyncConnection,
    *,
    trial_id: int,
    checkpoint_uuid: str,
    kind: str,
    model_id: int | None,
    model_version: int | None,
) -> None:
    """Link a trial with a checkpoint; the last report about the two counts. Raises NotFound for either."""
    if await connection.scalar(select(trials.c.id).where(trials.c.id == trial_id)) is None:
        raise NotFound("trial", trial_id)
    if await connection.scalar(select(checkpoints.c.uuid).where(checkpoints.c.uuid == checkpoint_uuid)) is None:
        raise NotFound("checkpoint", checkpoint_uuid)
    values = {"trial_source_info_type": kind, "model_id": model_id, "model_version": model_version}
    await connection.execute(
        insert(trial_sources)
        .values(trial_id=trial_id, checkpoint_uuid=checkpoint_uuid, **values)
        .on_conflict_do_update(index_elements=["trial_id", "checkpoint_uuid"], set_=values)
    )
