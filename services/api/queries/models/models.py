"""Models as the REST interface shows them (docs/reference/platform.md 10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ARRAY, ColumnElement, Select, Text, and_, cast, false, func, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.models import model_versions, models
from libs.db.tables.users import users
from libs.db.tables.workspaces import workspaces
from libs.errors import NotFound, ResoluteError
from libs.natural_order.sql import natural
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.pagination import list_bounds
from services.api.queries.workspaces.workspaces import of_users
from services.api.wire.base import INT64_MAX, Pagination, struct_value, timestamp
from services.api.wire.models.models import GetModelsQuery, Model, SortModels
from services.api.wire.ordering import OrderBy

Row = Mapping[Any, Any]

_ID: Final = re.compile(r"[0-9]+")
_NUM_VERSIONS: Final = (
    select(func.count()).where(model_versions.c.model_id == models.c.id).scalar_subquery().label("num_versions")
)
_SORT_COLUMNS: Final[dict[SortModels, ColumnElement[Any]]] = {
    SortModels.UNSPECIFIED: models.c.id,
    SortModels.NAME: natural(models.c.name),
    SortModels.DESCRIPTION: natural(models.c.description),
    SortModels.CREATION_TIME: models.c.created_at,
    SortModels.LAST_UPDATED_TIME: models.c.updated_at,
    SortModels.NUM_VERSIONS: _NUM_VERSIONS,
    SortModels.WORKSPACE: natural(workspaces.c.name),
}


class ModelNotFound(NotFound):
    def __init__(self, name_or_id: str) -> None:
        ResoluteError.__init__(self, f'model "{name_or_id}" not found')


async def model_row(connection: AsyncConnection, name_or_id: str, rights: UserRights, *, lock: bool = False) -> Row:
    """The model of that name; digits, which cannot be a name, are an id.

    lock  until the transaction ends nobody else changes it, or adds a version
    Raises ModelNotFound, also for what the caller may not know of.
    """
    is_meant = and_(_is_meant(name_or_id), _seen_by(rights))
    if lock:
        await connection.execute(select(models.c.id).where(is_meant).with_for_update())
    row: Row | None = (await connection.execute(_select_all().where(is_meant))).mappings().one_or_none()
    if row is None:
        raise ModelNotFound(name_or_id)
    return row


async def list_models(
    connection: AsyncConnection, query: GetModelsQuery, rights: UserRights
) -> tuple[list[Model], Pagination]:
    """A page of those that match. Raises InvalidRequest for an offset that is out of bounds."""
    found = _matching(query).where(_seen_by(rights))
    total = (await connection.execute(select(func.count()).select_from(found.subquery()))).scalar_one()
    page = list_bounds(total, offset=query.offset, limit=query.limit)
    column = _SORT_COLUMNS[query.sort_by]
    descending = query.order_by is OrderBy.DESC
    ordered = found.order_by(*(one.desc() if descending else one.asc() for one in (column, models.c.id)))
    rows = await connection.execute(ordered.offset(page.start_index).limit(page.end_index - page.start_index))
    return [wire_model(row) for row in rows.mappings()], page


async def list_labels(connection: AsyncConnection, workspace_id: int | None, rights: UserRights) -> list[str]:
    """The labels of all models, or of those in a workspace: those of most models first, then by name."""
    each = func.jsonb_array_elements_text(models.c.labels).table_valued("label").render_derived()
    statement = (
        select(each.c.label)
        .select_from(models.join(each, true()))
        .where(_seen_by(rights))
        .group_by(each.c.label)
        .order_by(func.count().desc(), natural(each.c.label), each.c.label)
    )
    if workspace_id is not None:
        statement = statement.where(models.c.workspace_id == workspace_id)
    return list((await connection.execute(statement)).scalars())


def _seen_by(rights: UserRights) -> ColumnElement[bool]:
    return rights.where(Action.VIEW_MODEL, models.c.workspace_id)


def wire_model(row: Row) -> Model:
    return Model(
        id=row["id"],
        name=row["name"],
        description=row["description"],
        notes=row["notes"],
        metadata=struct_value(row["metadata"]),
        labels=row["labels"],
        user_id=row["owner_id"],
        username=row["username"],
        workspace_id=row["workspace_id"],
        archived=row["archived"],
        num_versions=row["num_versions"],
        creation_time=timestamp(row["created_at"]),
        last_updated_time=timestamp(row["updated_at"]),
    )


def _select_all() -> Select[Any]:
    return select(models, users.c.username, _NUM_VERSIONS).select_from(
        models.join(users, users.c.id == models.c.owner_id).join(workspaces, workspaces.c.id == models.c.workspace_id)
    )


def _is_meant(name_or_id: str) -> ColumnElement[bool]:
    if not _ID.fullmatch(name_or_id):
        return models.c.name == name_or_id
    digits = name_or_id.lstrip("0")
    if len(digits) > len(str(INT64_MAX)) or int(digits or "0") > INT64_MAX:
        return false()
    return models.c.id == int(digits or "0")


def _matching(query: GetModelsQuery) -> Select[Any]:
    statement = _select_all()
    if isinstance(query.id, int):
        statement = statement.where(models.c.id == query.id)
    if query.name:
        statement = statement.where(models.c.name.icontains(query.name, autoescape=True))
    if query.description:
        statement = statement.where(models.c.description.icontains(query.description, autoescape=True))
    if query.labels:
        statement = statement.where(models.c.labels.has_any(cast(query.labels, ARRAY(Text))))
    if isinstance(query.archived, bool):
        statement = statement.where(models.c.archived.is_(query.archived))
    if query.workspace_ids or query.workspace_names:
        named = [name.lower() for name in query.workspace_names]
        statement = statement.where(
            or_(any_of(workspaces.c.id, query.workspace_ids), any_of(func.lower(workspaces.c.name, type_=Text), named))
        )
    return of_users(statement, query.users, query.user_ids, owner=models.c.owner_id)
