"""The database of this installation while an import writes it: alone, into one that nobody has used yet, in batches.

How far each kind has come is a row of its own, written with the rows of the batch in one transaction. Whoever kills an
import loses the batch that was under way, and the next one goes on behind the last.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from deploy.determined_import.connecting import connect_or_refuse
from deploy.determined_import.kinds.compared import record_all
from deploy.determined_import.kinds.copied import CopiedTable, batch, count_copied, overwrite
from deploy.determined_import.kinds.reports import METRICS
from deploy.determined_import.old_database import OldDatabase, SourceCount
from deploy.determined_import.piping import pipe
from deploy.determined_import.refusal import ImportRefused
from deploy.determined_import.summaries import OF_BATCH, bring_up_to_date
from libs.db.connecting.settings import APPLICATION, FORMER_APPLICATION, IMPORT_APPLICATION
from libs.db.rows_at_start import ROWS_AT_START
from libs.db.tables import metadata
from services.scheduler.scheduler_lease import SCHEDULER_LOCK

_SETTINGS: Final = {
    "application_name": IMPORT_APPLICATION,
    "statement_timeout": "0",
    "jit": "off",
    # Hashes of rows are over their text.
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "extra_float_digits": "1",
}


class Progress(Struct, frozen=True, kw_only=True):
    """How far one kind is; what follows ``finished_at`` is None before that."""

    last_key: str | None = None
    imported: int = 0
    finished_at: datetime | None = None
    in_source: int | None = None
    skipped: dict[str, int] = {}
    in_target: int | None = None


class NewDatabase:
    """A connection that holds the lock of schedulers: nobody acts upon what is imported before all of it is there."""

    def __init__(self, connection: Any, *, source: str) -> None:
        self.connection = connection
        self._source = source

    async def progress(self, kind: str) -> Progress:
        row = await self.connection.fetchrow(
            "SELECT last_key, imported, finished_at, in_source, skipped, in_target FROM import_progress"
            " WHERE source = $1 AND kind = $2",
            self._source,
            kind,
        )
        if row is None:
            return Progress()
        return Progress(**{**row, "skipped": msgspec.json.decode(row["skipped"])})

    async def copy_batch(self, old: OldDatabase, table: CopiedTable, *, last: str | None, until: str) -> int:
        """Copy the rows above ``last`` up to ``until`` and remember it, in one transaction; returns how many."""
        async with self.connection.transaction():
            if last is None:
                for statement in table.before:
                    await self.connection.execute(statement)
            rows = await self._copy(old, table, batch(table, last, until))
            if table is METRICS:
                await self.connection.execute(OF_BATCH, int(last or 0), int(until))
            await self.connection.execute(
                "INSERT INTO import_progress (source, kind, last_key, imported) VALUES ($1, $2, $3, $4)"
                " ON CONFLICT (source, kind) DO UPDATE SET last_key = excluded.last_key,"
                " imported = import_progress.imported + excluded.imported",
                self._source,
                table.kind,
                until,
                rows,
            )
            return rows

    async def finish_kind(self, table: CopiedTable, counted: SourceCount) -> None:
        """Remember that a kind is complete, what there is of it on both sides, and each of its rows."""
        async with self.connection.transaction():
            if not table.follows:
                await self.connection.execute(record_all(table))
            await self._remember_counts(table, counted)

    async def _remember_counts(self, table: CopiedTable, counted: SourceCount) -> None:
        in_target = await self.connection.fetchval(count_copied(table))
        await self.connection.execute(
            "INSERT INTO import_progress (source, kind, finished_at, in_source, skipped, in_target)"
            " VALUES ($1, $2, now(), $3, $4, $5)"
            " ON CONFLICT (source, kind) DO UPDATE SET finished_at = excluded.finished_at,"
            " in_source = excluded.in_source, skipped = excluded.skipped, in_target = excluded.in_target",
            self._source,
            table.kind,
            counted.wanted + sum(counted.skipped.values()),
            msgspec.json.encode(counted.skipped).decode(),
            in_target,
        )

    async def remember_repetition(
        self, table: CopiedTable, counted: SourceCount, *, imported: int, in_target: int
    ) -> None:
        """Remember what there is on both sides by now."""
        await self.connection.execute(
            "UPDATE import_progress SET imported = $3, in_source = $4, skipped = $5, in_target = $6"
            " WHERE source = $1 AND kind = $2",
            self._source,
            table.kind,
            imported,
            counted.wanted + sum(counted.skipped.values()),
            msgspec.json.encode(counted.skipped).decode(),
            in_target,
        )

    async def was_complete(self) -> bool:
        """Whether an import from this installation has come to its end before."""
        found: bool = await self.connection.fetchval(
            "SELECT finished_at IS NOT NULL FROM imports WHERE source = $1", self._source
        )
        return found

    async def advance_sequences(self) -> None:
        """Let the ids of new rows begin behind those that were imported."""
        for table in metadata.sorted_tables:
            for column in table.columns:
                if column.identity is not None:
                    await self.connection.execute(
                        # Never backwards: ids of what was deleted here are not given again.
                        f"SELECT setval(pg_get_serial_sequence('{table.name}', '{column.name}'),"  # noqa: S608
                        f" greatest(max({column.name}), (SELECT coalesce(s.last_value, 0) FROM pg_sequences s"
                        f" WHERE format('%I.%I', s.schemaname, s.sequencename)"
                        f" = pg_get_serial_sequence('{table.name}', '{column.name}'))))"
                        f" FROM {table.name} HAVING max({column.name}) > 0"
                    )

    async def finish(self) -> None:
        await self.connection.execute(
            "UPDATE imports SET finished_at = coalesce(finished_at, now()) WHERE source = $1", self._source
        )

    async def take_in(self, old: OldDatabase, table: CopiedTable, query: str, *, name: str = "incoming") -> int:
        """Fill a temporary table with rows from the old database; it is gone with the transaction."""
        await self.connection.execute(f"CREATE TEMP TABLE {name} (LIKE {table.target.name}) ON COMMIT DROP")
        for column in table.target.c:
            if column.name not in table.columns:
                await self.connection.execute(f"ALTER TABLE {name} DROP COLUMN {column.name}")
        return await pipe(old.connection, query, self.connection, name, list(table.columns))

    async def _copy(self, old: OldDatabase, table: CopiedTable, query: str) -> int:
        if not table.replaces:
            return await pipe(old.connection, query, self.connection, table.target.name, list(table.columns))
        rows = await self.take_in(old, table, query)
        await self.connection.execute(overwrite(table, "incoming"))
        return rows


@asynccontextmanager
async def open_new_database(url: str, *, source: str, kinds: Iterable[CopiedTable]) -> AsyncIterator[NewDatabase]:
    """The database at ``url``, for an import from ``source`` that begins or goes on.

    Raises ImportRefused when it is in use, or has rows that no earlier part of this import has written.
    """
    connection = await connect_or_refuse(url, "the database of this installation", _SETTINGS)
    try:
        await _check_schema(connection)
        await _take_alone(connection)
        known = await connection.fetchval("SELECT count(*) FROM imports WHERE source = $1", source)
        if not known:
            await _check_unused(connection, kinds)
            await connection.execute("INSERT INTO imports (source) VALUES ($1)", source)
        await bring_up_to_date(connection)
        # What services have made of metrics for charts, and make anew: what comes may be between these.
        await connection.execute("DELETE FROM metric_levels")
        yield NewDatabase(connection, source=source)
    finally:
        await connection.close()


async def _check_schema(connection: Any) -> None:
    if await connection.fetchval("SELECT to_regclass('import_rows') IS NULL"):
        raise ImportRefused("the database of this installation lacks tables of this release: run `resolute db upgrade`")


async def _take_alone(connection: Any) -> None:
    """Keep schedulers away, and see that no service is there."""
    others = await connection.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = ANY($1)",
        [APPLICATION, FORMER_APPLICATION],
    )
    if others or not await connection.fetchval("SELECT pg_try_advisory_lock($1)", SCHEDULER_LOCK):
        raise ImportRefused(
            "services of this installation, or another import, are connected to its database: stop them, and start them"
            " when the import is complete"
        )


async def _check_unused(connection: Any, kinds: Iterable[CopiedTable]) -> None:
    used: dict[str, int] = {}
    for name in dict.fromkeys(table.target.name for table in kinds):
        rows = await connection.fetchval(f"SELECT count(*) FROM {name}")  # noqa: S608
        if rows > ROWS_AT_START.get(name, 0):
            used[name] = rows
    if used:
        found = ", ".join(f"{name} ({rows} rows)" for name, rows in used.items())
        raise ImportRefused(
            f"this installation has been used already: {found}. Ids would clash with those of the old installation;"
            " import into a new, empty database"
        )
