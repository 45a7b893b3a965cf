"""Weights of shares, as far as they concern the caller."""

from __future__ import annotations

from sqlalchemy import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.cluster import share_weights
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.cluster.holders import NAME, concerns, with_holders
from services.api.wire.base import timestamp
from services.api.wire.cluster.holders import HolderScope
from services.api.wire.cluster.shares import GetSharesQuery, Share


async def list_shares(connection: AsyncConnection, wanted: GetSharesQuery, *, rights: UserRights) -> list[Share]:
    """Users first, then groups and workspaces, each by name."""
    query = with_holders(share_weights).where(NAME.is_not(None), concerns(share_weights, rights, Action.SET_SHARES))
    if wanted.scope is not None:
        query = query.where(share_weights.c.scope == wanted.scope.value)
    order = {scope: place for place, scope in enumerate(HolderScope)}
    found = [_share(row) for row in (await connection.execute(query)).mappings()]
    return sorted(found, key=lambda one: (order[one.scope], one.name))


async def find_share(connection: AsyncConnection, ident: int) -> Share | None:
    """One of them, whomever it is for."""
    query = with_holders(share_weights).where(share_weights.c.id == ident, NAME.is_not(None))
    row = (await connection.execute(query)).mappings().one_or_none()
    return None if row is None else _share(row)


def _share(row: RowMapping) -> Share:
    return Share(
        id=row["id"],
        scope=HolderScope(row["scope"]),
        name=row["name"],
        weight=row["weight"],
        set_by=row["setter"] or "",
        set_at=timestamp(row["set_at"]),
    )
