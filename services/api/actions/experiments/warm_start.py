"""The checkpoint that the trials of a new experiment start from.

The choice is made once, when the experiment is created, and written into its configuration: trials that the search adds
next week start from the same checkpoint as those of today. Source: docs/reference/experiments.md 1.7 (warm start).
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.checkpoints import checkpoints
from libs.errors import InvalidRequest

_FAILED: Final = "failed to create experiment: "


async def pin_warm_start(connection: AsyncConnection, config: dict[str, Any]) -> None:
    """Set ``searcher.source_checkpoint_uuid`` to the latest checkpoint of ``searcher.source_trial_id``, if given.

    Without it, the checkpoint that the user named has to exist. Raises InvalidRequest.
    """
    searcher = config["searcher"]
    trial_id, uuid = searcher.get("source_trial_id"), searcher.get("source_checkpoint_uuid")
    if trial_id is not None:
        searcher["source_checkpoint_uuid"] = await _latest_of(connection, trial_id)
    elif uuid is not None:
        await _check_complete(connection, uuid)


async def _latest_of(connection: AsyncConnection, trial_id: int) -> str:
    latest = await connection.execute(
        select(checkpoints.c.uuid)
        .where(checkpoints.c.trial_id == trial_id, checkpoints.c.state == "COMPLETED")
        .order_by(checkpoints.c.steps_completed.desc().nulls_last(), checkpoints.c.report_time.desc())
        .limit(1)
    )
    uuid: str | None = latest.scalar_one_or_none()
    if uuid is None:
        raise InvalidRequest(f"{_FAILED}no checkpoint found for source trial {trial_id}")
    return uuid


async def _check_complete(connection: AsyncConnection, uuid: str) -> None:
    found = await connection.execute(select(checkpoints.c.state).where(checkpoints.c.uuid == uuid))
    state: str | None = found.scalar_one_or_none()
    if state is None:
        raise InvalidRequest(f"{_FAILED}no checkpoint found with uuid '{uuid}'")
    if state != "COMPLETED":
        raise InvalidRequest(f"{_FAILED}checkpoint '{uuid}' is in state {state}, its files are not all there")
