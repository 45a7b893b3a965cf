"""Registers checkpoints as versions of models, and changes and deletes versions (docs/reference/platform.md 10).

A checkpoint that is registered keeps its files: nobody deletes it, neither a person nor a retention policy nor the
deletion of its experiment. All of these lock the experiment, and so does a registration, so that either comes first.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import UNSET
from sqlalchemy import Row, Select, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.checkpoints.registered_checkpoints import is_about_to_go
from libs.db.outbox import announce
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.models import model_versions, models
from libs.errors import FailedPrecondition, InvalidRequest, NotFound
from libs.ids import canonical_uuid
from services.api.access.rights.rights import UserRights
from services.api.actions.models.fields import checked_labels
from services.api.actions.models.models import changeable_model, changed, forget_sources
from services.api.actions.models.rights import check_may_delete_version
from services.api.queries.models.models import model_row
from services.api.queries.models.versions import version_row
from services.api.wire.models.versions import PatchModelVersion, PostModelVersionRequest


async def register_version(
    connection: AsyncConnection, name_or_id: str, request: PostModelVersionRequest, rights: UserRights, *, now: datetime
) -> int:
    """The number of the new version, one more than the highest of the model.

    Raises InvalidRequest, NotFound, PermissionDenied, and FailedPrecondition for a model that is archived and for a
    checkpoint that is not whole, or will not be for long.
    """
    labels = checked_labels(request.labels)
    if not request.checkpoint_uuid:
        raise InvalidRequest("checkpointUuid must be given")
    checkpoint = await _lock_checkpoint(connection, canonical_uuid(request.checkpoint_uuid))
    model = await changeable_model(connection, name_or_id, rights)
    if checkpoint.state != "COMPLETED":
        raise FailedPrecondition(
            f"checkpoint '{checkpoint.uuid}' is {checkpoint.state}: only a COMPLETED one can be registered"
        )
    if await is_about_to_go(connection, checkpoint.uuid, checkpoint.experiment_id):
        raise FailedPrecondition(f"files of checkpoint '{checkpoint.uuid}' are being deleted")
    highest = select(func.coalesce(func.max(model_versions.c.version), 0)).where(
        model_versions.c.model_id == model["id"]
    )
    number = int((await connection.execute(highest)).scalar_one()) + 1
    await connection.execute(
        insert(model_versions).values(
            model_id=model["id"],
            version=number,
            checkpoint_uuid=checkpoint.uuid,
            name=request.name,
            comment=request.comment,
            notes=request.notes,
            metadata=request.metadata or {},
            labels=labels,
            owner_id=rights.principal.user_id,
            created_at=now,
            updated_at=now,
        )
    )
    await _touch(connection, model["id"], now)
    await announce(connection, changed(model, "version_registered", version=number))
    return number


async def patch_version(
    connection: AsyncConnection,
    name_or_id: str,
    number: int,
    patch: PatchModelVersion,
    rights: UserRights,
    *,
    now: datetime,
) -> None:
    """Raises NotFound, PermissionDenied, FailedPrecondition, InvalidRequest."""
    model = await changeable_model(connection, name_or_id, rights)
    version = await version_row(connection, model, number, lock=True)
    values: dict[str, Any] = {
        column: value
        for column in ("name", "comment", "notes", "metadata")
        if (value := getattr(patch, column)) is not UNSET
    }
    if patch.labels is not UNSET:
        values["labels"] = checked_labels(patch.labels)
    if values:
        mine = update(model_versions).where(model_versions.c.id == version["id"])
        await connection.execute(mine.values(**values, updated_at=now))
        await _touch(connection, model["id"], now)
        await announce(connection, changed(model, "version_changed", version=number))


async def delete_version(
    connection: AsyncConnection, name_or_id: str, number: int, rights: UserRights, *, now: datetime
) -> None:
    """Its checkpoint stays, and is as any other afterwards. Raises NotFound, PermissionDenied."""
    model = await model_row(connection, name_or_id, rights, lock=True)
    version = await version_row(connection, model, number, lock=True)
    check_may_delete_version(rights, model, version)
    await forget_sources(connection, model["id"], number)
    await connection.execute(delete(model_versions).where(model_versions.c.id == version["id"]))
    await _touch(connection, model["id"], now)
    await announce(connection, changed(model, "version_deleted", version=number))


async def _lock_checkpoint(connection: AsyncConnection, uuid: str) -> Row[Any]:
    """The checkpoint, which nobody deletes before this transaction has ended. Raises NotFound."""
    found: Select[Any] = select(checkpoints.c.uuid, checkpoints.c.experiment_id, checkpoints.c.state).where(
        checkpoints.c.uuid == uuid
    )
    row = (await connection.execute(found)).one_or_none()
    if row is None:
        raise NotFound("checkpoint", uuid)
    of_it = select(experiments.c.id).where(experiments.c.id == row.experiment_id)
    await connection.execute(of_it.with_for_update(read=True))
    locked: Row[Any] = (await connection.execute(found.with_for_update(key_share=True))).one()
    return locked


async def _touch(connection: AsyncConnection, model_id: int, now: datetime) -> None:
    await connection.execute(update(models).where(models.c.id == model_id).values(updated_at=now))
