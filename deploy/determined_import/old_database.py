"""The database of the old installation, which is only ever read: one snapshot of it for a whole import."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
from msgspec import Struct

from deploy.determined_import.connecting import connect_or_refuse
from deploy.determined_import.kinds.copied import CopiedTable, counts, next_key, no_rows
from deploy.determined_import.refusal import ImportRefused

_READ_ONLY: Final = {
    "application_name": "resolute import",
    "default_transaction_read_only": "on",
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
}
_BUILT_IN: Final = (
    ("users", "SELECT count(*) = 2 FROM users WHERE id IN (1, 2)"),
    ("workspaces", "SELECT count(*) = 1 FROM workspaces WHERE id = 1"),
    ("projects", "SELECT count(*) = 1 FROM projects WHERE id = 1"),
)
"""Rows that every installation has under these ids, here and there."""


class SourceCount(Struct, frozen=True):
    """Rows that are to be imported, and those that are not, by reason."""

    wanted: int
    skipped: dict[str, int]


class AccessToken(Struct, frozen=True, kw_only=True):
    """An access token that its owner has to make again."""

    owner: str
    description: str
    expires_at: str


class OldDatabase:
    """A snapshot; every statement sees the same rows, also while the old server runs on."""

    def __init__(self, connection: Any, *, cluster_id: str) -> None:
        self.connection = connection
        self.cluster_id = cluster_id

    async def next_key(self, table: CopiedTable, last: str | None) -> str | None:
        found: str | None = await self.connection.fetchval(next_key(table, last))
        return found

    async def count(self, table: CopiedTable) -> SourceCount:
        found = {row["reason"]: row["rows"] for row in await self.connection.fetch(counts(table))}
        wanted = found.pop(None, 0)
        return SourceCount(wanted, dict(sorted(found.items())))

    async def rows_of(self, names: Iterable[str]) -> dict[str, int]:
        """How many rows tables have; those that are empty, or not there, are left out."""
        rows: dict[str, int] = {}
        for name in names:
            if await self.connection.fetchval("SELECT to_regclass($1) IS NOT NULL", name):
                rows[name] = await self.connection.fetchval(f"SELECT count(*) FROM {name}")  # noqa: S608
        return {name: number for name, number in rows.items() if number}

    async def access_tokens(self) -> list[AccessToken]:
        """Those that were in force: nobody but the old server can verify them."""
        rows = await self.connection.fetch(
            "SELECT u.username AS owner, coalesce(s.description, '') AS description, s.expiry::text AS expires_at"
            " FROM user_sessions s JOIN users u ON u.id = s.user_id"
            " WHERE s.token_type::text = 'ACCESS_TOKEN' AND s.revoked_at IS NULL"
            " AND s.expiry > now() AT TIME ZONE 'UTC' ORDER BY 1, s.id"
        )
        return [AccessToken(**row) for row in rows]


@asynccontextmanager
async def open_old_database(url: str, kinds: Iterable[CopiedTable]) -> AsyncIterator[OldDatabase]:
    """A snapshot of the database at ``url``. Raises ImportRefused when ``kinds`` cannot be read from it."""
    connection = await connect_or_refuse(url, "the old database", _READ_ONLY)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await _check_schema(connection, list(kinds))
            cluster_id = await connection.fetchval("SELECT cluster_id FROM cluster_id LIMIT 1")
            if not cluster_id:
                raise ImportRefused("the old database has no cluster id: no server of Determined has ever used it")
            yield OldDatabase(connection, cluster_id=cluster_id)
    finally:
        await connection.close()


async def _check_schema(connection: Any, kinds: Sequence[CopiedTable]) -> None:
    try:
        await connection.fetchval("SELECT cluster_id FROM cluster_id LIMIT 1")
        for table in kinds:
            await connection.fetch(no_rows(table))
        for name, is_there in _BUILT_IN:
            if not await connection.fetchval(is_there):
                raise ImportRefused(f"the old database lacks the {name} that every installation of Determined has")
    except asyncpg.SyntaxOrAccessError as error:
        raise ImportRefused(
            f"the old database cannot be read as one of Determined 0.38: {error}. One of an older version is upgraded"
            " by starting a server of 0.38 on it once; the user of the connection needs the right to read all tables"
        ) from error
