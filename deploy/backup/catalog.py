"""Which tables and columns a database has, by its own catalog: its schema may be that of a release before this one."""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any, Final

from msgspec import Struct

from libs.db.schema.found import MIGRATION_LOCK

REVISION_TABLE: Final = "alembic_version"
_COLUMNS: Final = f"""
SELECT relname, array_agg(attname::text ORDER BY attnum)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace
    AND relname <> '{REVISION_TABLE}' AND attnum > 0 AND NOT attisdropped
GROUP BY relname ORDER BY relname
"""  # noqa: S608
_REFERENCES: Final = """
SELECT referring.relname, referred.relname
FROM pg_constraint
JOIN pg_class referring ON referring.oid = conrelid
JOIN pg_class referred ON referred.oid = confrelid
WHERE contype = 'f' AND conparentid = 0 AND conrelid <> confrelid
    AND connamespace = current_schema()::regnamespace
"""
_DROPS: Final = """
SELECT format('DROP %s %s CASCADE', kind, name) FROM (
    SELECT 1 AS place, 'TABLE' AS kind, oid::regclass::text AS name, tableoid, oid
    FROM pg_class
    WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace
    UNION ALL
    SELECT 2, 'SEQUENCE', oid::regclass::text, tableoid, oid
    FROM pg_class WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace
    UNION ALL
    SELECT 3, 'ROUTINE', oid::regprocedure::text, tableoid, oid
    FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
    UNION ALL
    SELECT 4, CASE typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, oid::regtype::text, tableoid, oid
    FROM pg_type WHERE typtype IN ('d', 'e', 'r') AND typnamespace = current_schema()::regnamespace
) AS object
WHERE NOT EXISTS (
    -- Sequences of columns go with their table, and what belongs to an extension stays.
    SELECT FROM pg_depend WHERE classid = object.tableoid AND objid = object.oid AND objsubid = 0
        AND (deptype IN ('i', 'e') OR kind = 'SEQUENCE' AND deptype = 'a')
)
ORDER BY place, name
"""


class StoredTable(Struct, frozen=True):
    name: str
    columns: tuple[str, ...]
    """In the order in which the database lists them."""


async def read_tables(connection: Any) -> list[StoredTable]:
    """The tables of the installation, each behind those that it refers to; partitions are part of their table."""
    columns = {name: tuple(found) for name, found in await connection.fetch(_COLUMNS)}
    order = TopologicalSorter[str](dict.fromkeys(columns, ()))
    for referring, referred in await connection.fetch(_REFERENCES):
        order.add(referring, referred)
    return [StoredTable(name, columns[name]) for name in order.static_order()]


async def drop_schema(connection: Any) -> None:
    """Drop everything of the installation that has a name, inside a transaction that has locked the tables."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
    for (statement,) in await connection.fetch(_DROPS):
        await connection.execute(statement)


async def lock_tables(connection: Any) -> None:
    """Nobody else reads or writes a table until the transaction ends."""
    names = ", ".join(f'"{table.name}"' for table in await read_tables(connection))
    await connection.execute(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
