"""The workspace that a task is launched in, and the pools that it prefers.

Source: docs/reference/tasks-and-cli.md 2.3 and 2.13; docs/reference/platform.md 7.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.workspaces import workspaces
from libs.errors import NotFound
from services.api.queries.workspaces.available_pools import unavailable_to

DEFAULT_WORKSPACE: Final = 1


class Home(Struct, frozen=True, kw_only=True):
    workspace_id: int
    compute_pool: str
    aux_pool: str
    unavailable_pools: frozenset[str] = frozenset()
    """Those that are bound to other workspaces only."""


async def load_home(
    connection: AsyncConnection,
    workspace_id: int,
    *,
    keep: bool = False,
    require: Callable[[Home], None] = lambda _: None,
) -> Home:
    """The workspace of that id; 0 is the one that every installation has.

    keep     nobody archives or deletes it until the transaction ends; others may launch in it
    require  raises when whoever asks may not know of it, or not launch there
    Raises NotFound, also for one that is archived or being deleted: nobody may launch there.
    """
    wanted = workspace_id or DEFAULT_WORKSPACE
    query = select(workspaces, unavailable_to(wanted).label("unavailable_pools")).where(workspaces.c.id == wanted)
    row = (await connection.execute(query.with_for_update(read=True) if keep else query)).one_or_none()
    if row is None:
        raise NotFound("workspace", wanted)
    home = Home(
        workspace_id=wanted,
        compute_pool=row.default_compute_pool,
        aux_pool=row.default_aux_pool,
        unavailable_pools=frozenset(row.unavailable_pools or ()),
    )
    require(home)
    if row.archived or row.state:
        error = NotFound("workspace", wanted)
        error.args = (f"{error}: it is {'archived' if row.archived else 'being deleted'}",)
        raise error
    return home
