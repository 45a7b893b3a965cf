"""Access tokens as the REST interface shows them (docs/reference/platform.md 2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.users import user_sessions, users
from libs.natural_order.sql import natural
from services.api.wire.base import timestamp
from services.api.wire.ordering import OrderBy
from services.api.wire.users.tokens import GetTokensQuery, SortTokens, TokenInfo

ACCESS: Final = "ACCESS"
"""The type of sessions that are access tokens."""
_SORT: Final = {
    SortTokens.UNSPECIFIED: user_sessions.c.id,
    SortTokens.USER_ID: user_sessions.c.user_id,
    SortTokens.EXPIRY: user_sessions.c.expires_at,
    SortTokens.CREATED_AT: user_sessions.c.created_at,
    SortTokens.TOKEN_TYPE: user_sessions.c.token_type,
    SortTokens.REVOKED: user_sessions.c.revoked_at.is_not(None),
    SortTokens.DESCRIPTION: natural(user_sessions.c.description),
}


def wire_token(row: Mapping[Any, Any]) -> TokenInfo:
    return TokenInfo(
        id=row["id"],
        user_id=row["user_id"],
        expiry=timestamp(row["expires_at"]),
        created_at=timestamp(row["created_at"]),
        revoked=row["revoked_at"] is not None,
        description=row["description"],
    )


async def list_tokens(
    connection: AsyncConnection, query: GetTokensQuery, *, owner_id: int | None, now: datetime
) -> list[TokenInfo]:
    """Every token that matches, of one user or, with None, of all; only the good ones unless asked otherwise."""
    statement = (
        select(user_sessions)
        .join(users, users.c.id == user_sessions.c.user_id)
        .where(user_sessions.c.token_type == ACCESS)
    )
    if owner_id is not None:
        statement = statement.where(user_sessions.c.user_id == owner_id)
    if query.username:
        statement = statement.where(users.c.username == query.username)
    if query.token_ids:
        statement = statement.where(any_of(user_sessions.c.id, query.token_ids))
    if not query.show_inactive:
        statement = statement.where(user_sessions.c.revoked_at.is_(None), user_sessions.c.expires_at > now)
    column = _SORT[query.sort_by]
    order = column.desc() if query.order_by is OrderBy.DESC else column.asc()
    rows = await connection.execute(statement.order_by(order, user_sessions.c.id))
    return [wire_token(row) for row in rows.mappings()]
