"""Creates, changes, moves, archives and deletes models (docs/reference/platform.md 10)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, UnsetType
from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.outbox import announce
from libs.db.tables.checkpoints import trial_sources
from libs.db.tables.models import models
from libs.db.tables.workspaces import workspaces
from libs.errors import AlreadyExists, FailedPrecondition, NotFound
from libs.events.changes import ModelChanged
from services.api.access.rights.actions import Action
from services.api.access.rights.needs import require_in
from services.api.access.rights.rights import UserRights
from services.api.actions.models.fields import checked_labels, checked_name
from services.api.actions.models.rights import check_may_delete_model
from services.api.queries.models.models import Row, model_row
from services.api.wire.models.models import PatchModel, PostModelRequest

DEFAULT_WORKSPACE: Final = 1
ModelEvent: TypeAlias = Literal[
    "changed", "moved", "deleted", "version_registered", "version_changed", "version_deleted"
]


async def create_model(
    connection: AsyncConnection, request: PostModelRequest, rights: UserRights, *, now: datetime
) -> Row:
    """Raises InvalidRequest, NotFound, PermissionDenied, FailedPrecondition, AlreadyExists."""
    name, labels = checked_name(request.name), checked_labels(request.labels)
    workspace_id = await _lock_workspace(connection, request.workspace_id, request.workspace_name, rights)
    if workspace_id is None:
        workspace_id = DEFAULT_WORKSPACE
        require_in(rights, Action.CREATE_MODEL, "workspace", workspace_id, workspace_id=workspace_id)
    new = (
        insert(models)
        .values(
            name=name,
            description=request.description,
            notes=request.notes,
            metadata=request.metadata or {},
            labels=labels,
            owner_id=rights.principal.user_id,
            workspace_id=workspace_id,
            created_at=now,
            updated_at=now,
        )
        .on_conflict_do_nothing()
        .returning(models.c.id)
    )
    model_id = await connection.scalar(new)
    if model_id is None:
        raise _taken()
    created = ModelChanged(model_id=int(model_id), what="created", name=name, workspace_id=workspace_id)
    await announce(connection, created)
    return await model_row(connection, str(model_id), rights)


async def patch_model(
    connection: AsyncConnection, name_or_id: str, patch: PatchModel, rights: UserRights, *, now: datetime
) -> Row:
    """The model as it is now. Raises NotFound, PermissionDenied, FailedPrecondition, InvalidRequest, AlreadyExists."""
    # The workspace before the model, as in the deletion of a workspace.
    workspace_id = await _lock_workspace(connection, patch.workspace_id, patch.workspace_name, rights)
    before = await changeable_model(connection, name_or_id, rights)
    values: dict[str, Any] = {}
    if patch.name is not UNSET and patch.name != before["name"]:
        values["name"] = checked_name(patch.name)
        if await connection.scalar(select(models.c.id).where(models.c.name == patch.name)) is not None:
            raise _taken()
    for column in ("description", "notes", "metadata"):
        if (value := getattr(patch, column)) is not UNSET:
            values[column] = value
    if patch.labels is not UNSET:
        values["labels"] = checked_labels(patch.labels)
    if workspace_id is not None and workspace_id != before["workspace_id"]:
        values["workspace_id"] = workspace_id
    if values:
        mine = update(models).where(models.c.id == before["id"])
        await connection.execute(mine.values(**values, updated_at=now))
    row = await model_row(connection, str(before["id"]), rights)
    if values:
        await announce(connection, changed(row, "moved" if "workspace_id" in values else "changed"))
    return row


async def archive_model(
    connection: AsyncConnection, name_or_id: str, rights: UserRights, *, archived: bool, now: datetime
) -> None:
    """Archive a model, or bring it back; what is so already stays as it is. Raises NotFound, PermissionDenied."""
    before = await model_row(connection, name_or_id, rights, lock=True)
    rights.require(Action.EDIT_MODEL, workspace_id=before["workspace_id"])
    if before["archived"] != archived:
        mine = update(models).where(models.c.id == before["id"])
        await connection.execute(mine.values(archived=archived, updated_at=now))
        await announce(connection, changed(before, "changed"))


async def delete_model(connection: AsyncConnection, name_or_id: str, rights: UserRights) -> None:
    """Delete a model with its versions; their checkpoints stay. Raises NotFound, PermissionDenied."""
    row = await model_row(connection, name_or_id, rights, lock=True)
    check_may_delete_model(rights, row)
    await forget_sources(connection, row["id"])
    await connection.execute(delete(models).where(models.c.id == row["id"]))
    await announce(connection, changed(row, "deleted"))


def changed(model: Row, what: ModelEvent, *, version: int | None = None) -> ModelChanged:
    """The event that says so."""
    return ModelChanged(
        model_id=model["id"], what=what, name=model["name"], workspace_id=model["workspace_id"], version=version
    )


async def changeable_model(connection: AsyncConnection, name_or_id: str, rights: UserRights) -> Row:
    """The model, locked. Raises NotFound, PermissionDenied, and FailedPrecondition for one that is archived."""
    row = await model_row(connection, name_or_id, rights, lock=True)
    rights.require(Action.EDIT_MODEL, workspace_id=row["workspace_id"])
    if row["archived"]:
        raise FailedPrecondition(f'model "{row["name"]}" is archived and cannot be changed: unarchive it first')
    return row


async def forget_sources(connection: AsyncConnection, model_id: int, number: int | None = None) -> None:
    """Trials that work with a version that goes, or with any of the model, still work with its checkpoint.

    The number may be given to another version, which is not theirs.
    """
    mine = update(trial_sources).where(trial_sources.c.model_id == model_id)
    if number is not None:
        mine = mine.where(trial_sources.c.model_version == number)
    await connection.execute(mine.values(model_id=None, model_version=None))


async def _lock_workspace(
    connection: AsyncConnection, workspace_id: int | UnsetType, name: str | UnsetType, rights: UserRights
) -> int | None:
    """The workspace that a model is to be in, by its id or else its name; None when nothing is said.

    Raises NotFound, PermissionDenied, and FailedPrecondition for one that takes no models.
    """
    if isinstance(workspace_id, int):
        named, is_meant = str(workspace_id), workspaces.c.id == workspace_id
    elif isinstance(name, str):
        named, is_meant = name, func.lower(workspaces.c.name) == name.lower()
    else:
        return None
    query = select(workspaces.c.id, workspaces.c.archived, workspaces.c.state).where(is_meant)
    row = (await connection.execute(query.with_for_update(read=True))).one_or_none()
    if row is None:
        raise NotFound("workspace", named)
    rights.require_seen(Action.CREATE_MODEL, "workspace", named, workspace_id=row.id)
    rights.require(Action.CREATE_MODEL, workspace_id=row.id)
    if row.archived:
        raise FailedPrecondition(f"workspace ({row.id}) is archived and cannot add new models")
    if row.state:
        raise FailedPrecondition(f"workspace ({row.id}) is being deleted and cannot add new models")
    return int(row.id)


def _taken() -> AlreadyExists:
    return AlreadyExists("avoid names equal to other models (case-sensitive)")
