"""Pools that a workspace may use: all but those that are bound to others only (docs/reference/scheduling.md 9.3)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.workspaces import pool_bindings
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights


def unavailable_to(workspace: ColumnElement[int] | int) -> ColumnElement[Any]:
    """The names of the pools that are bound to other workspaces only, as an array; NULL when there are none.

    workspace  a column of the enclosing query, or an id
    """
    mine = pool_bindings.alias("mine")
    bound_here = select(mine.c.pool).where(mine.c.pool == pool_bindings.c.pool, mine.c.workspace_id == workspace)
    others = select(func.array_agg(pool_bindings.c.pool.distinct())).where(~bound_here.correlate_except(mine).exists())
    return others.correlate_except(pool_bindings).scalar_subquery()


async def unavailable_pools(connection: AsyncConnection, workspace_id: int) -> frozenset[str]:
    """The names of the pools that the workspace may not use."""
    return frozenset(await connection.scalar(select(unavailable_to(workspace_id))) or ())


async def hidden_pools(connection: AsyncConnection, rights: UserRights) -> frozenset[str]:
    """The names of the pools that are bound to workspaces of which the caller may see none."""
    visible = func.bool_or(rights.where(Action.VIEW_WORKSPACE, pool_bindings.c.workspace_id))
    query = select(pool_bindings.c.pool).group_by(pool_bindings.c.pool).having(~visible)
    return frozenset((await connection.execute(query)).scalars())


async def bound_pools(connection: AsyncConnection) -> frozenset[str]:
    """The names of the pools that are for some workspaces only."""
    return frozenset((await connection.execute(select(pool_bindings.c.pool).distinct())).scalars())
