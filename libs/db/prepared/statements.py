"""Statements written out in SQL, given to the driver without a detour; for what changes rows on the hottest paths.

SQLAlchemy builds a statement, looks up its compiled form and makes objects of the result, which costs several times
what the driver needs to send it. One statement may do the work of several, which saves ways to the database. Services
without SQLAlchemy execute them on connections of the driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import asyncpg
import msgspec

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

_PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z_]+)")
_CHANGES: Final = re.compile(r"\b(INSERT|UPDATE|DELETE)\s+(INTO|FROM|\w+\s+SET)\b")
_LOCKS: Final = re.compile(r"\bFOR\s+(NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)\b|\bpg_advisory_xact_lock\b")

Row = Mapping[Any, Any]
Connection: TypeAlias = "AsyncConnection | asyncpg.Connection"
"""Of a ``Database``, or of a ``DriverPool``."""


class PreparedStatement:
    """One statement, with parameters ``:name``. JSON goes in as text (``as_document``), and comes out as its value.

    Lists of documents are ``text[]`` and cast one by one: of ``jsonb[]`` the driver would ask on each new connection.

    Raises what asyncpg does, or the same from SQLAlchemy.
    """

    def __init__(self, sql: str) -> None:
        self._names: list[str] = []
        self._sql = _PARAMETER.sub(self._number, sql)
        self._changes = _CHANGES.search(sql) is not None
        self._needs_transaction = self._changes or _LOCKS.search(sql) is not None

    async def rows(self, connection: Connection, **parameters: Any) -> Sequence[Row]:
        """The rows that it returns. What changes or locks rows is in the transaction of ``connection``.

        On connections of a ``DriverPool``, JSON comes out as text.
        """
        arguments = [parameters[name] for name in self._names]
        if isinstance(connection, asyncpg.Connection):
            taken: Sequence[Row] = await connection.fetch(self._sql, *arguments)
            return taken
        return await self._on_sqlalchemy(connection, arguments)

    async def _on_sqlalchemy(self, connection: AsyncConnection, arguments: Sequence[Any]) -> Sequence[Row]:
        # Imported here: who has a connection of the driver does without SQLAlchemy.
        from libs.db.audit.records import changes  # noqa: PLC0415
        from libs.db.engine import driver_connection  # noqa: PLC0415

        driver = await driver_connection(connection)
        if self._changes:
            changes(connection)
        if self._needs_transaction and not driver.is_in_transaction():
            # SQLAlchemy begins a transaction with its first statement.
            result = await connection.exec_driver_sql(self._sql, tuple(arguments))
            return result.mappings().all() if result.returns_rows else ()
        found: Sequence[Row] = await driver.fetch(self._sql, *arguments)
        return found

    def _number(self, match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in self._names:
            self._names.append(name)
        return f"${self._names.index(name) + 1}"


def as_document(value: object) -> str:
    """A value as a parameter for ``jsonb``."""
    return msgspec.json.encode(value).decode()
