"""Versions of models, each with its whole checkpoint, from which clients download (docs/reference/platform.md 10)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET
from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.models import model_versions
from libs.db.tables.users import users
from libs.errors import NotFound, ResoluteError
from services.api.queries.checkpoints.checkpoints import checkpoints_by_uuid
from services.api.queries.models.models import Row, wire_model
from services.api.queries.pagination import list_bounds
from services.api.wire.base import Pagination, struct_value, timestamp
from services.api.wire.checkpoints.checkpoints import Checkpoint, CheckpointState, CheckpointTraining
from services.api.wire.models.models import Model
from services.api.wire.models.versions import GetModelVersionsQuery, ModelVersion, SortModelVersions
from services.api.wire.ordering import OrderBy

_SORT_COLUMNS: Final[dict[SortModelVersions, ColumnElement[Any]]] = {
    SortModelVersions.UNSPECIFIED: model_versions.c.version,
    SortModelVersions.VERSION: model_versions.c.version,
    SortModelVersions.CREATION_TIME: model_versions.c.created_at,
}


class ModelVersionNotFound(NotFound):
    def __init__(self, model: str, number: int) -> None:
        ResoluteError.__init__(self, f'version {number} for model "{model}" not found')


async def version_row(connection: AsyncConnection, model: Row, number: int, *, lock: bool = False) -> Row:
    """Raises ModelVersionNotFound."""
    statement = _of_model(model).where(model_versions.c.version == number)
    if lock:
        statement = statement.with_for_update(of=model_versions)
    row: Row | None = (await connection.execute(statement)).mappings().one_or_none()
    if row is None:
        raise ModelVersionNotFound(model["name"], number)
    return row


async def load_version(connection: AsyncConnection, model: Row, number: int, *, reader_id: int) -> ModelVersion:
    """One version, as that user sees it. Raises ModelVersionNotFound."""
    row = await version_row(connection, model, number)
    (version,) = await _wire_versions(connection, model, [row], reader_id)
    return version


async def list_versions(
    connection: AsyncConnection, model: Row, query: GetModelVersionsQuery, *, reader_id: int
) -> tuple[list[ModelVersion], Pagination]:
    """A page of the versions of a model. Raises InvalidRequest for an offset that is out of bounds."""
    page = list_bounds(model["num_versions"], offset=query.offset, limit=query.limit)
    columns = (_SORT_COLUMNS[query.sort_by], model_versions.c.version)
    descending = query.order_by is OrderBy.DESC
    ordered = _of_model(model).order_by(*(column.desc() if descending else column.asc() for column in columns))
    rows = await connection.execute(ordered.offset(page.start_index).limit(page.end_index - page.start_index))
    return await _wire_versions(connection, model, list(rows.mappings()), reader_id), page


def _of_model(model: Row) -> Select[Any]:
    return (
        select(
            model_versions,
            func.coalesce(users.c.username, "").label("username"),
            func.coalesce(checkpoints.c.steps_completed, 0).label("steps_completed"),
        )
        .select_from(
            model_versions.outerjoin(users, users.c.id == model_versions.c.owner_id).outerjoin(
                checkpoints, checkpoints.c.uuid == model_versions.c.checkpoint_uuid
            )
        )
        .where(model_versions.c.model_id == model["id"])
    )


async def _wire_versions(
    connection: AsyncConnection, model: Row, rows: list[Row], reader_id: int
) -> list[ModelVersion]:
    uuids = {row["checkpoint_uuid"] for row in rows}
    found = await checkpoints_by_uuid(connection, uuids, reader_id=reader_id)
    shown = wire_model(model)
    return [_wire_version(row, shown, found.get(row["checkpoint_uuid"])) for row in rows]


def _wire_version(row: Row, model: Model, checkpoint: Checkpoint | None) -> ModelVersion:
    return ModelVersion(
        id=row["id"],
        model=model,
        version=row["version"],
        checkpoint=_gone(row["checkpoint_uuid"]) if checkpoint is None else _with_steps(checkpoint, row),
        name=row["name"],
        comment=row["comment"],
        notes=row["notes"],
        metadata=struct_value(row["metadata"]),
        labels=row["labels"],
        user_id=UNSET if row["owner_id"] is None else row["owner_id"],
        username=row["username"],
        creation_time=timestamp(row["created_at"]),
        last_updated_time=timestamp(row["updated_at"]),
    )


def _with_steps(checkpoint: Checkpoint, row: Row) -> Checkpoint:
    """``det model`` counts on finding the steps in any metadata, and people may take them out."""
    if not checkpoint.metadata or "steps_completed" in checkpoint.metadata:
        return checkpoint
    metadata = {"steps_completed": row["steps_completed"], **checkpoint.metadata}
    return msgspec.structs.replace(checkpoint, metadata=metadata)


def _gone(uuid: str) -> Checkpoint:
    """What is left of a checkpoint that another installation had lost before it was imported."""
    return Checkpoint(
        task_id="",
        uuid=uuid,
        report_time=None,
        resources={},
        metadata={},
        state=CheckpointState.DELETED,
        training=CheckpointTraining(),
    )
