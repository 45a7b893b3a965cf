"""All rows of the database, as they were in one moment, and back into an empty one.

Rows go by COPY, table by table in the order of their references. ``pg_dump`` is not needed, which would have to be as
new as the server. Tables and columns are those that the database has: its schema may be that of a release before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from deploy.backup.archive import ArchiveWriter
from deploy.backup.catalog import REVISION_TABLE, StoredTable, read_tables
from libs.db.rows_at_start import ROWS_AT_START
from libs.errors import FailedPrecondition, InvalidRequest

PREFIX: Final = "database"
LAYOUT: Final = f"{PREFIX}.layout"
_FLEETING: Final = frozenset({"log_writers", "metric_levels", "metric_chunks"})
"""Tables of which only the present is of interest, and those that are made again of others when somebody asks for it.
Backups of releases before have rows of the latter, and these are restored."""
_UNRECORDED_ORDER: Final = {"experiments": ("users_pod", "config")}
"""Backups of releases whose newest schema was 0005 do not say in which order the columns of a row are. It was that of
the database but for one column of this table, which came behind another."""
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
    """What there is beside rows: partitions that came with time, how far sequences have counted, orders of columns."""

    partitions: tuple[Partition, ...]
    sequences: dict[str, int]
    columns: dict[str, tuple[str, ...]] = {}
    """By table, in the order in which its rows have them; empty in backups of releases that did not say it."""


async def dump_database(connection: Any, archive: ArchiveWriter, *, schema: str) -> dict[str, int]:
    """Write everything that one snapshot shows; returns the number of rows by table.

    schema  the revision that the database is said to have
    Raises FailedPrecondition when it has another one by now.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        found = await connection.fetchval(f"SELECT version_num FROM {REVISION_TABLE}")  # noqa: S608
        if found != schema:
            raise FailedPrecondition(f"the schema was {schema} and became {found} meanwhile; take the backup again")
        tables = _kept(await read_tables(connection))
        with archive.section(LAYOUT) as section:
            section.write(msgspec.json.encode(await _layout(connection, tables)))
        return {table.name: await _dump(connection, archive, table) for table in tables}


async def _dump(connection: Any, archive: ArchiveWriter, table: StoredTable) -> int:
    columns = ", ".join(f'"{name}"' for name in table.columns)
    with archive.section(f"{PREFIX}/{table.name}") as section:

        async def write(data: bytes) -> None:
            section.write(data)

        status = await connection.copy_from_query(f'SELECT {columns} FROM "{table.name}"', output=write)  # noqa: S608
    return int(status.removeprefix("COPY "))


async def expect_empty(connection: Any) -> None:
    """Raises FailedPrecondition when somebody uses this installation, or has used it."""
    if services := await connection.fetchval(_CONNECTED_SERVICES):
        raise FailedPrecondition(f"services hold {services} connections to the database; stop them all, launchers too")
    for table in _kept(await read_tables(connection)):
        rows = await connection.fetchval(f'SELECT count(*) FROM (SELECT 1 FROM "{table.name}" LIMIT 3) AS found')  # noqa: S608
        if rows > ROWS_AT_START.get(table.name, 0):
            raise FailedPrecondition(
                f"the database is in use: there are rows in {table.name}; restore into a new, empty database, on one"
                " machine with: resolute --state NEW_FOLDER restore FILE"
            )


class DatabaseLoader:
    """Takes the sections of a backup, in their order, inside a transaction of ``connection``.

    The database has the schema that the backup says.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._sequences: dict[str, int] = {}
        self._columns: dict[str, Sequence[str]] = {}
        self.rows: dict[str, int] = {}

    async def begin(self) -> None:
        """Make room: what every installation begins with is in the backup too."""
        tables = await read_tables(self._connection)
        names = ", ".join(f'"{table.name}"' for table in tables)
        await self._connection.execute(f"TRUNCATE {names} CASCADE")
        self._columns = {table.name: _unrecorded_order(table) for table in tables}
        self.rows = {table.name: 0 for table in _kept(tables)}
        # What they would write has been written, and is in the backup.
        await self._let_triggers("DISABLE")

    async def take(self, name: str, parts: Iterable[bytes]) -> None:
        """Raises InvalidRequest for a section of a table that the database does not have."""
        if name == LAYOUT:
            await self._prepare(msgspec.json.decode(b"".join(parts), type=DatabaseLayout))
            return
        table = name.removeprefix(f"{PREFIX}/")
        if table not in self._columns:
            raise InvalidRequest(f"the backup has rows of {table}, which its schema does not have")
        status = await self._connection.copy_to_table(table, columns=self._columns[table], source=_stream(parts))
        self.rows[table] = int(status.removeprefix("COPY "))

    async def end(self) -> None:
        for name, value in self._sequences.items():
            await self._connection.execute("SELECT setval($1::text::regclass, $2)", f'"{name}"', value)
        await self._let_triggers("ENABLE")

    async def _let_triggers(self, change: str) -> None:
        for table in await self._connection.fetch(_WITH_TRIGGERS):
            await self._connection.execute(f'ALTER TABLE "{table["relname"]}" {change} TRIGGER USER')

    async def _prepare(self, layout: DatabaseLayout) -> None:
        self._sequences = layout.sequences
        self._columns |= layout.columns
        for each in layout.partitions:
            await self._connection.execute(
                f'CREATE TABLE IF NOT EXISTS "{each.name}" PARTITION OF "{each.of}" {each.bound}'
            )


async def _layout(connection: Any, tables: Iterable[StoredTable]) -> DatabaseLayout:
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
        partitions=tuple(Partition(*row) for row in partitions),
        sequences=dict(map(tuple, sequences)),
        columns={table.name: table.columns for table in tables},
    )


def _kept(tables: Iterable[StoredTable]) -> list[StoredTable]:
    return [table for table in tables if table.name not in _FLEETING]


def _unrecorded_order(table: StoredTable) -> list[str]:
    columns = list(table.columns)
    moved, before = _UNRECORDED_ORDER.get(table.name, ("", ""))
    if moved in columns:
        columns.remove(moved)
        columns.insert(columns.index(before) + 1, moved)
    return columns


async def _stream(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
