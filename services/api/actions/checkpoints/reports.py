"""Checkpoints as training code and checkpoint GC report them (docs/reference/experiments.md 10.1, 10.2;
docs/reference/harness-protocol.md 15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.checkpoints.registered_checkpoints import check_not_registered
from libs.db.outbox import announce
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.errors import AlreadyExists, InvalidRequest, NotFound
from libs.events.changes import CheckpointChanged
from libs.searchers.reports import read_number
from services.api.actions.checkpoints.storage import check_storage
from services.api.queries.tasks.trial_tasks import trial_of_task

COMPLETED, PARTIALLY_DELETED, DELETED = "COMPLETED", "PARTIALLY_DELETED", "DELETED"
_METADATA_FILE = "metadata.json"
_MAX_STEPS = 2**62


class ReportedCheckpoint(Struct, frozen=True, kw_only=True):
    """A checkpoint that is complete in its storage; ``resources`` maps relative paths to bytes."""

    uuid: str
    task_id: str
    allocation_id: str | None
    report_time: datetime
    resources: Mapping[str, int]
    metadata: Mapping[str, Any]
    storage_id: int | None


async def report_checkpoint(connection: AsyncConnection, reported: ReportedCheckpoint) -> None:
    """Record a checkpoint of a trial; the same one reported again changes nothing.

    Raises NotFound for the task, InvalidRequest when it is not a trial's or the storage not one of its experiment,
    AlreadyExists for another task's checkpoint.
    """
    trial_id, experiment_id = await _trial_of(connection, reported.task_id)
    if reported.storage_id is not None:
        await check_storage(connection, experiment_id, reported.storage_id)
    await _lock(connection, [experiment_id], [trial_id])
    steps = _steps_completed(reported.metadata)
    row = {
        "uuid": reported.uuid,
        "task_id": reported.task_id,
        "allocation_id": reported.allocation_id,
        "trial_id": trial_id,
        "experiment_id": experiment_id,
        "report_time": reported.report_time,
        "state": COMPLETED,
        "resources": dict(reported.resources),
        "metadata": dict(reported.metadata),
        "steps_completed": steps,
        "size_bytes": sum(reported.resources.values()),
        "storage_id": reported.storage_id,
    }
    added = insert(checkpoints).values(row).on_conflict_do_nothing().returning(checkpoints.c.uuid)
    if await connection.scalar(added) is None:
        owner = await connection.scalar(select(checkpoints.c.task_id).where(checkpoints.c.uuid == reported.uuid))
        if owner != reported.task_id:
            raise AlreadyExists(f"checkpoint '{reported.uuid}' was reported by another task")
        return
    await recount(connection, [experiment_id], [trial_id])
    await announce(
        connection,
        CheckpointChanged(
            uuid=reported.uuid,
            what="reported",
            state=COMPLETED,
            trial_id=trial_id,
            steps_completed=steps,
        ),
    )


async def _trial_of(connection: AsyncConnection, task_id: str) -> tuple[int, int]:
    """Trial and experiment of a task. Raises NotFound, InvalidRequest."""
    found = await trial_of_task(connection, task_id)
    if found.task_type != "TRIAL" or found.trial_id is None or found.experiment_id is None:
        raise InvalidRequest("can only report checkpoints on trial's tasks")
    return found.trial_id, found.experiment_id


def _steps_completed(metadata: Mapping[str, Any]) -> int | None:
    steps = read_number(metadata.get("steps_completed"))
    return int(steps) if steps is not None and abs(steps) < _MAX_STEPS else None


async def refresh_files(connection: AsyncConnection, files: Mapping[str, Mapping[str, int] | None]) -> None:
    """Record what is left of checkpoints: uuid -> path -> bytes; nothing left is DELETED, None says nothing of it.

    Repeating it changes nothing. Raises NotFound, naming all that are unknown, and FailedPrecondition, naming all that
    are registered as versions of models.
    """
    columns = checkpoints.c
    query = select(columns.uuid, columns.trial_id, columns.experiment_id).where(any_of(columns.uuid, files))
    owners = (await connection.execute(query)).all()
    if unknown := sorted(set(files) - {owner.uuid for owner in owners}):
        raise NotFound("checkpoints", ", ".join(unknown))
    experiment_ids = [owner.experiment_id for owner in owners if owner.experiment_id is not None]
    trial_ids = [owner.trial_id for owner in owners if owner.trial_id is not None]
    await _lock(connection, experiment_ids, trial_ids)
    await check_not_registered(connection, files, "patched")
    rows = await connection.execute(
        select(checkpoints).where(any_of(columns.uuid, files)).order_by(columns.uuid).with_for_update()
    )
    for row in rows.all():
        if (left := files[row.uuid]) is not None:
            await _refresh(connection, row, left)
    await recount(connection, experiment_ids, trial_ids)


async def _refresh(connection: AsyncConnection, row: Row[Any], left: Mapping[str, int]) -> None:
    state = state_after(row.state, row.resources, left)
    if state == row.state and (state == DELETED or dict(left) == row.resources):
        return
    values: dict[str, Any] = {"state": state}
    if state != DELETED:  # what a deleted checkpoint had stays to be seen
        values.update(resources=dict(left), size_bytes=sum(left.values()))
    await connection.execute(update(checkpoints).where(checkpoints.c.uuid == row.uuid).values(**values))
    await announce(
        connection,
        CheckpointChanged(
            uuid=row.uuid,
            what="deleted" if state == DELETED else "changed",
            state=state,
            trial_id=row.trial_id,
            steps_completed=row.steps_completed,
        ),
    )


def state_after(state: str, before: Mapping[str, int], left: Mapping[str, int]) -> str:
    """The state of a checkpoint of which these files are left: path -> bytes.

    A ``metadata.json`` that was not there before is no difference: clients write it when they download.
    """
    if not left:
        return DELETED
    same = dict(left) == dict(before) or {p: s for p, s in left.items() if p != _METADATA_FILE} == dict(before)
    return state if same else PARTIALLY_DELETED


async def replace_checkpoint_metadata(connection: AsyncConnection, uuid: str, metadata: Mapping[str, Any]) -> None:
    """Put ``metadata`` in the place of all the checkpoint has. Raises NotFound."""
    changed = await connection.execute(
        update(checkpoints)
        .where(checkpoints.c.uuid == uuid)
        .values(metadata=dict(metadata))
        .returning(checkpoints.c.state, checkpoints.c.trial_id, checkpoints.c.steps_completed)
    )
    row = changed.one_or_none()
    if row is None:
        raise NotFound("checkpoint", uuid)
    await announce(
        connection,
        CheckpointChanged(
            uuid=uuid, what="changed", state=row.state, trial_id=row.trial_id, steps_completed=row.steps_completed
        ),
    )


async def recount(connection: AsyncConnection, experiment_ids: Sequence[int], trial_ids: Sequence[int]) -> None:
    """Bring number and size of checkpoints of locked experiments and trials up to date; deleted ones do not count."""
    for table, column, ids in (
        (experiments, checkpoints.c.experiment_id, experiment_ids),
        (trials, checkpoints.c.trial_id, trial_ids),
    ):
        mine = (column == table.c.id) & (checkpoints.c.state != DELETED)
        size = select(func.coalesce(func.sum(checkpoints.c.size_bytes), 0)).where(mine).scalar_subquery()
        count = select(func.count()).select_from(checkpoints).where(mine).scalar_subquery()
        await connection.execute(
            update(table).where(any_of(table.c.id, set(ids))).values(checkpoint_size=size, checkpoint_count=count)
        )


async def _lock(connection: AsyncConnection, experiment_ids: Sequence[int], trial_ids: Sequence[int]) -> None:
    for table, ids in ((experiments, experiment_ids), (trials, trial_ids)):
        query = select(table.c.id).where(any_of(table.c.id, set(ids))).order_by(table.c.id)
        await connection.execute(query.with_for_update(key_share=True))
