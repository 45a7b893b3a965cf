"""Makes, changes and deletes templates (docs/reference/tasks-and-cli.md 7).

What a template says is not checked when it is stored: one template may serve experiments and other tasks alike, and
each of them knows best what it can use.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.templates import templates
from libs.errors import AlreadyExists, FailedPrecondition, InvalidRequest, NotFound
from services.api.queries.workspaces.templates import load_template, wire_template
from services.api.queries.workspaces.workspaces import locked_workspace
from services.api.wire.workspaces.templates import Template, TemplateFields

DEFAULT_WORKSPACE: Final = 1
MOST_TEMPLATES: Final = 10_000
LONGEST_NAME: Final = 256
"""In characters; the index of the table could not hold names of any length."""


async def create_template(db: Database, name: str, fields: TemplateFields) -> Template:
    """Raises InvalidRequest, NotFound for its workspace, FailedPrecondition, AlreadyExists."""
    _check_name(name)
    async with db.transaction() as connection:
        new = upsert(templates).values(**await _new(connection, name, fields))
        row = (await connection.execute(new.on_conflict_do_nothing().returning(templates))).one_or_none()
    if row is None:
        raise _taken(name)
    return wire_template(row)


async def put_template(db: Database, name: str, fields: TemplateFields) -> Template:
    """Make it, or change of it what ``fields`` say.

    Raises InvalidRequest, NotFound for its workspace, FailedPrecondition.
    """
    _check_name(name)
    async with db.transaction() as connection:
        new = upsert(templates).values(**await _new(connection, name, fields))
        changed: dict[str, Any] = {"name": name}  # no change, but it makes the statement return the row
        if fields.config is not UNSET:
            changed["config"] = new.excluded.config
        if fields.workspace_id:
            changed["workspace_id"] = new.excluded.workspace_id
        put = new.on_conflict_do_update(index_elements=[templates.c.name], set_=changed).returning(templates)
        return wire_template((await connection.execute(put)).one())


async def set_template_config(db: Database, name: str, config: dict[str, Any]) -> Template:
    """Raises NotFound."""
    return await _change(db, name, {"config": config})


async def rename_template(db: Database, name: str, new_name: str) -> Template:
    """Raises InvalidRequest, NotFound, AlreadyExists."""
    _check_name(new_name)
    async with db.read() as connection:
        await load_template(connection, name)
        taken = (await connection.execute(select(templates.c.name).where(templates.c.name == new_name))).scalar()
    if taken is not None and new_name != name:
        raise _taken(new_name)  # if somebody takes it only now, the database refuses, in fewer words
    return await _change(db, name, {"name": new_name})


async def delete_template(db: Database, name: str) -> None:
    """Raises NotFound."""
    async with db.transaction() as connection:
        gone = await connection.execute(delete(templates).where(templates.c.name == name).returning(templates.c.name))
        if gone.first() is None:
            raise NotFound("template", name)


async def _change(db: Database, name: str, values: dict[str, Any]) -> Template:
    async with db.transaction() as connection:
        changed = update(templates).where(templates.c.name == name).values(values).returning(templates)
        row = (await connection.execute(changed)).one_or_none()
    if row is None:
        raise NotFound("template", name)
    return wire_template(row)


async def _new(connection: AsyncConnection, name: str, fields: TemplateFields) -> dict[str, Any]:
    """The columns of a template that is not there yet; its workspace is kept from going away meanwhile."""
    workspace_id = fields.workspace_id or DEFAULT_WORKSPACE
    workspace = await locked_workspace(connection, workspace_id)
    if workspace["state"]:
        raise FailedPrecondition(f"workspace ({workspace_id}) is being deleted and cannot add new templates")
    count = await connection.scalar(select(func.count()).select_from(templates).where(templates.c.name != name))
    if (count or 0) >= MOST_TEMPLATES:
        raise InvalidRequest(f"there are {MOST_TEMPLATES} templates, and no more are allowed")
    config = {} if fields.config is UNSET else fields.config
    return {"name": name, "config": config, "workspace_id": workspace_id}


def _check_name(name: str) -> None:
    if not name.strip():
        raise InvalidRequest("name is required")
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"name: must not be longer than {LONGEST_NAME} characters")


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists(f"template '{name}' already exists")
