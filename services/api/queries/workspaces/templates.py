"""Templates as the REST interface shows them (docs/reference/tasks-and-cli.md 7)."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config import parse_template
from libs.db.any_of import any_of
from libs.db.tables.templates import templates
from libs.errors import NotFound
from libs.natural_order.sql import natural
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.pagination import sql_page
from services.api.wire.base import Pagination, struct_value
from services.api.wire.ordering import OrderBy
from services.api.wire.workspaces.templates import GetTemplatesQuery, Template


async def load_template(connection: AsyncConnection, name: str) -> Template:
    """Raises NotFound."""
    row = (await connection.execute(select(templates).where(templates.c.name == name))).one_or_none()
    if row is None:
        raise NotFound("template", name)
    return wire_template(row)


async def parsed_template(connection: AsyncConnection, name: str) -> dict[str, Any]:
    """The template of this name as a partial configuration in normal form; nothing for no name.

    Raises NotFound, and InvalidRequest for what nobody can use.
    """
    if not name:
        return {}
    found = await load_template(connection, name)
    return await asyncio.to_thread(parse_template, name, found.config)


async def list_templates(
    connection: AsyncConnection, query: GetTemplatesQuery, *, rights: UserRights
) -> tuple[list[Template], Pagination]:
    """Those that match and that the caller may see, by name."""
    found = _matching(query).where(rights.where(Action.VIEW_TEMPLATE, templates.c.workspace_id))
    total = (await connection.execute(select(func.count()).select_from(found.subquery()))).scalar_one()
    page = sql_page(total, offset=query.offset, limit=query.limit)
    by_name = natural(templates.c.name)
    order = by_name.desc() if query.order_by is OrderBy.DESC else by_name.asc()
    rows = await connection.execute(found.order_by(order, templates.c.name).offset(page.start).limit(page.limit))
    return [wire_template(row) for row in rows], page.pagination


def wire_template(row: Any) -> Template:
    return Template(name=row.name, config=struct_value(row.config), workspace_id=row.workspace_id)


def _matching(query: GetTemplatesQuery) -> Select[Any]:
    statement = select(templates)
    if query.name:
        statement = statement.where(templates.c.name.icontains(query.name, autoescape=True))
    if query.workspace_ids:
        statement = statement.where(any_of(templates.c.workspace_id, query.workspace_ids))
    return statement
