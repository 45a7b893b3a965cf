"""All rows of the database, as they were in one moment, and back into an empty one.

Rows go by COPY, table by table in the order of their references. ``pg_dump`` is not needed, which would have to be as
new as the server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import Table

from deploy.operations.backup.archive import ArchiveWriter
from libs.db.rows_at_start import ROWS_AT_START
from libs.db.tables import metadata
from libs.errors import FailedPrecondition

PREFIX: Final = "database"
LAYOUT: Final = f"{PREFIX}.layout"
_FLEETING: Final = frozenset({"log_writers"})
"""Tables of which only the present is of interest."""
_WITH_TRIGGERS: Final = (
    "SELECT DISTINCT relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
    " WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace ORDER BY 1"
)
_CONNECTED_SERVICES: Final = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'resolute%' AND pid <> pg_backend_pid()"
)


class Partition(Struct, frozen=True):
    name: str
    of: str
    bound: str
    """``FOR VALUES ...`` or ``DEFAULT``."""


class DatabaseLayout(Struct, frozen=True, kw_only=True):
    """What there is beside rows: partitions that came with time, and how far sequences have counted."""

    partitions: tuple[Partition, ...]
    sequences: dict[str, int]


async def dump_database(connection: Any, archive: ArchiveWriter) -> dict[str, int]:
    """Write everything that one snapshot shows; returns the number of rows by table."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        with archive.section(LAYOUT) as section:
            section.write(msgspec.json.encode(await _layout(connection)))
        return {table.name: await _dump(connection, archive, table) for table in _tables()}


async def _dump(connection: Any, archive: ArchiveWriter, table: Table) -> int:
    with archive.section(f"{PREFIX}/{table.name}") as section:

        async def write(data: bytes) -> None:
            section.write(data)

        status = await connection.copy_from_query(f'SELECT {_columns(table)} FROM "{table.name}"', output=write)  # noqa: S608
    return int(status.removeprefix("COPY "))


async def expect_empty(connection: Any) -> None:
    """Raises FailedPrecondition when somebody uses this installation, or has used it."""
    if services := await connection.fetchval(_CONNECTED_SERVICES):
        raise FailedPrecondition(f"services hold {services} connections to the database; stop them all, launchers too")
    for table in _tables():
        rows = await connection.fetchval(f'SELECT count(*) FROM (SELECT 1 FROM "{table.name}" LIMIT 3) AS found')  # noqa: S608
        if rows > ROWS_AT_START.get(table.name, 0):
            raise FailedPrecondition(
                f"the database is in use: there are rows in {table.name}; restore into a new, empty database"
            )


class DatabaseLoader:
    """Takes the sections of a backup, in their order, inside a transaction of ``connection``."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._sequences: dict[str, int] = {}
        self.rows = {table.name: 0 for table in _tables()}

    async def begin(self) -> None:
        """Make room: what every installation begins with is in the backup too."""
        names = ", ".join(f'"{table.name}"' for table in metadata.sorted_tables)
        await self._connection.execute(f"TRUNCATE {names} CASCADE")
        # What they would write has been written, and is in the backup.
        await self._let_triggers("DISABLE")

    async def take(self, name: str, parts: Iterable[bytes]) -> None:
        if name == LAYOUT:
            await self._prepare(msgspec.json.decode(b"".join(parts), type=DatabaseLayout))
        else:
            table = metadata.tables[name.removeprefix(f"{PREFIX}/")]
            status = await self._connection.copy_to_table(
                table.name, columns=[column.name for column in table.columns], source=_stream(parts)
            )
            self.rows[table.name] = int(status.removeprefix("COPY "))

    async def end(self) -> None:
        for name, value in self._sequences.items():
            await self._connection.execute("SELECT setval($1::text::regclass, $2)", f'"{name}"', value)
        await self._let_triggers("ENABLE")

    async def _let_triggers(self, change: str) -> None:
        for table in await self._connection.fetch(_WITH_TRIGGERS):
            await self._connection.execute(f'ALTER TABLE "{table["relname"]}" {change} TRIGGER USER')

    async def _prepare(self, layout: DatabaseLayout) -> None:
        self._sequences = layout.sequences
        for each in layout.partitions:
            await self._connection.execute(
                f'CREATE TABLE IF NOT EXISTS "{each.name}" PARTITION OF "{each.of}" {each.bound}'
            )


async def _layout(connection: Any) -> DatabaseLayout:
    partitions = await connection.fetch(
        "SELECT child.relname, parent.relname, pg_get_expr(child.relpartbound, child.oid)"
        " FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid JOIN pg_class parent ON parent.oid = inhparent"
        " WHERE child.relispartition AND child.relkind = 'r' AND child.relnamespace = current_schema()::regnamespace"
        " ORDER BY 1"
    )
    sequences = await connection.fetch(
        "SELECT sequencename, last_value FROM pg_sequences"
        " WHERE schemaname = current_schema() AND last_value IS NOT NULL ORDER BY 1"
    )
    return DatabaseLayout(
        partitions=tuple(Partition(*row) for row in partitions), sequences=dict(map(tuple, sequences))
    )


def _tables() -> Iterator[Table]:
    """Tables in the order of their references."""
    return (table for table in metadata.sorted_tables if table.name not in _FLEETING)


def _columns(table: Table) -> str:
    return ", ".join(f'"{column.name}"' for column in table.columns)


async def _stream(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
