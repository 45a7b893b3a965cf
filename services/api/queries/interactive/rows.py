"""Rows of interactive tasks: each with its allocation, its owner and, of shells, what they take to log in.

Source: docs/reference/tasks-and-cli.md 2.7 and 2.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, func, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.interactive import interactive_tasks
from libs.db.tables.tasks import allocations, tasks
from libs.db.tables.users import users
from libs.db.tables.workspaces import workspaces
from libs.errors import NotFound
from libs.natural_order.sql import natural
from libs.tasks.interactive.ended import LISTED
from libs.tasks.interactive.kinds import KINDS, InteractiveType
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.access.rights.tensorboards import sees_all_it_shows
from services.api.queries.pagination import list_bounds
from services.api.queries.workspaces.workspaces import workspace_row
from services.api.wire.base import Pagination
from services.api.wire.interactive.common import ListQuery, SortBy
from services.api.wire.ordering import OrderBy

_BEING_DELETED: Final = select(workspaces.c.id).where(workspaces.c.state == "DELETING")
# Ids by code points, as clients of the reference know it, whatever the order of the database.
_SORT_COLUMN: Final[dict[SortBy, ColumnElement[Any]]] = {
    SortBy.UNSPECIFIED: tasks.c.task_id.collate("C"),
    SortBy.ID: tasks.c.task_id.collate("C"),
    SortBy.DESCRIPTION: natural(interactive_tasks.c.description),
    SortBy.START_TIME: tasks.c.start_time,
    SortBy.WORKSPACE_ID: tasks.c.workspace_id,
}


async def load_row(connection: AsyncConnection, kind: InteractiveType, task_id: str) -> Row[Any]:
    """One task, whenever it ended, with its ``config``. Raises NotFound, also for a task of another kind."""
    query = _of_kind(kind).add_columns(interactive_tasks.c.config).where(tasks.c.task_id == task_id)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise NotFound(KINDS[kind].noun, task_id)
    return row


async def list_rows(
    connection: AsyncConnection, kind: InteractiveType, wanted: ListQuery, *, now: datetime, rights: UserRights
) -> tuple[Sequence[Row[Any]], Pagination]:
    """Those that live or have ended lately, as far as they match and the caller may see them.

    What has ended in a workspace that is being deleted is not listed: the rest of the deletion may take a while.
    Raises NotFound for a workspace that does not exist,
    InvalidRequest for an offset out of bounds."""
    query = _of_kind(kind).where(or_(tasks.c.end_time.is_(None), tasks.c.end_time > now - LISTED))
    query = query.where(or_(tasks.c.end_time.is_(None), tasks.c.workspace_id.not_in(_BEING_DELETED)))
    query = query.where(rights.where(Action.VIEW_TASK, tasks.c.workspace_id))
    query = query.where(sees_all_it_shows(rights, tasks.c.task_id))
    if wanted.users or wanted.user_ids:
        query = query.where(or_(any_of(users.c.username, wanted.users), any_of(users.c.id, wanted.user_ids)))
    if wanted.workspace_id:
        await workspace_row(connection, wanted.workspace_id)
        rights.require_seen(Action.VIEW_WORKSPACE, "workspace", wanted.workspace_id, workspace_id=wanted.workspace_id)
        query = query.where(tasks.c.workspace_id == wanted.workspace_id)
    total = await connection.scalar(select(func.count()).select_from(query.subquery())) or 0
    page = list_bounds(total, offset=wanted.offset, limit=wanted.limit)
    column, ident = _SORT_COLUMN[wanted.sort_by], tasks.c.task_id.collate("C")
    order = (column.desc(), ident.desc()) if wanted.order_by is OrderBy.DESC else (column.asc(), ident.asc())
    size = page.end_index - page.start_index
    rows = await connection.execute(query.order_by(*order).offset(page.start_index).limit(size))
    return rows.all(), page


def _of_kind(kind: InteractiveType) -> Select[Any]:
    """Without context and specification, which may be large. Of a task that was preempted, its newest
    allocation counts."""
    # Ids of allocations end with the number of the attempt, of which the longest is the largest.
    newest = (
        select(*(allocations.c[name] for name in _OF_ALLOCATION))
        .where(allocations.c.task_id == tasks.c.task_id)
        .order_by(func.length(allocations.c.allocation_id).desc(), allocations.c.allocation_id.desc())
        .limit(1)
        .lateral("newest")
    )
    query = (
        select(
            tasks.c.task_id,
            tasks.c.task_type,
            tasks.c.owner_id,
            tasks.c.workspace_id,
            tasks.c.start_time.label("task_start"),
            tasks.c.end_time.label("task_end"),
            interactive_tasks.c.description,
            interactive_tasks.c.experiment_ids,
            interactive_tasks.c.trial_ids,
            interactive_tasks.c.private_key,
            interactive_tasks.c.public_key,
            *(newest.c[name] for name in _OF_ALLOCATION),
            users.c.username,
            users.c.display_name,
        )
        .join(interactive_tasks, interactive_tasks.c.task_id == tasks.c.task_id)
        .join(newest, true())
        .join(users, users.c.id == tasks.c.owner_id)
        .where(tasks.c.task_type == kind)
    )
    if kind != "SHELL":
        return query
    return query.add_columns(
        tasks.c.spec["proxy_ports"].label("proxy_ports"),
        *_identity_of(users, "user"),
        *_identity_of(workspaces, "workspace"),
    ).outerjoin(workspaces, workspaces.c.id == tasks.c.workspace_id)


_OF_ALLOCATION: Final = ("allocation_id", "job_id", "pool", "state", "assigned_at", "pods", "exit_error")


def _identity_of(table: Any, prefix: str) -> list[ColumnElement[Any]]:
    return [table.c[f"agent_{name}"].label(f"{prefix}_{name}") for name in ("uid", "user", "gid", "group")]
