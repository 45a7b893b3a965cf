"""A table of this system as a query over the old database, and the statements that follow from it. Pure.

Rows are changed by the old database itself, in the query that reads them: so they travel as they are, in binary, and a
million of them cost little more than a bare COPY.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from sqlalchemy import Date, DateTime, Table
from sqlalchemy.dialects import postgresql

_DIALECT: Final = postgresql.dialect()  # type: ignore[no-untyped-call]


class CopiedTable(Struct, frozen=True, kw_only=True):
    """Where the rows of one table come from.

    kind      what people call them; names them in the report and in the progress
    target    the table that they go to
    rows      table of the old database with its alias, ``experiments e``: each of its rows is one row of the target
    joins     what else ``columns`` look at; must neither drop nor repeat rows
    key       expression over ``rows`` by which they are read in batches; rows of one key stay together
    key_type  its type
    columns   column of the target -> expression; others keep their defaults
    skipped   reason -> condition over ``rows`` on which a row is left out
    before    statements for the target, before the first of the rows
    replaces  unique column: rows that the target has already, because every installation has them, are overwritten
    counted   condition on the rows of the target that come from here
    identity  columns that tell rows apart, where the primary key of the target is a number of its own
    counters  columns that only grow, on both sides: they are no sign that somebody has changed a row
    reset     column -> value that a row gets, beside ``columns``, when it is imported again
    follows   rows are as many as a trial reports or a task prints: they are not recorded one by one
    """

    kind: str
    target: Table
    rows: str
    columns: Mapping[str, str]
    joins: str = ""
    key: str = "id"
    key_type: str = "bigint"
    skipped: Mapping[str, str] = {}
    batch_rows: int = 20_000
    before: tuple[str, ...] = ()
    replaces: str = ""
    counted: str = "true"
    identity: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    reset: Mapping[str, str] = {}
    follows: bool = False


def next_key(table: CopiedTable, last: str | None) -> str:
    """Finds the key at which the batch after ``last`` ends, as text; no row when nothing is left."""
    after = "" if last is None else f" WHERE {table.key} > {_literal(last)}::{table.key_type}"
    return (
        f"SELECT k::text FROM (SELECT {table.key} AS k FROM {table.rows}{after}"  # noqa: S608
        f" ORDER BY 1 LIMIT {table.batch_rows}) batch ORDER BY k DESC LIMIT 1"
    )


def batch(table: CopiedTable, last: str | None, until: str) -> str:
    """Reads the rows above ``last`` up to ``until``, in the types of the target."""
    conditions = [f"{table.key} <= {_literal(until)}::{table.key_type}"]
    if last is not None:
        conditions.append(f"{table.key} > {_literal(last)}::{table.key_type}")
    conditions += [f"({condition}) IS NOT TRUE" for condition in table.skipped.values()]
    return _within_years(table, f"{_select(table)} WHERE {' AND '.join(conditions)}")


def no_rows(table: CopiedTable) -> str:
    """Fails where the old database lacks something that ``batch`` asks for."""
    return _within_years(table, f"{_select(table)} LIMIT 0")


def counts(table: CopiedTable) -> str:
    """Counts rows by the first reason to skip them; NULL is none."""
    cases = " ".join(f"WHEN {condition} THEN {_literal(reason)}" for reason, condition in table.skipped.items())
    reason = f"CASE {cases} END" if cases else "NULL::text"
    return f"SELECT {reason} AS reason, count(*) AS rows FROM {table.rows} GROUP BY 1"  # noqa: S608


def overwrite(table: CopiedTable, incoming: str) -> str:
    """Moves rows from the table ``incoming`` to the target, over those that are there."""
    columns = ", ".join(table.columns)
    values = ", ".join(f"{name} = excluded.{name}" for name in table.columns)
    return (
        f"INSERT INTO {table.target.name} ({columns}) SELECT {columns} FROM {incoming}"  # noqa: S608
        f" ON CONFLICT ({table.replaces}) DO UPDATE SET {values}"
    )


def count_copied(table: CopiedTable) -> str:
    """Counts, in the target, what has come from here."""
    return f"SELECT count(*) FROM {table.target.name} WHERE {table.counted}"  # noqa: S608


def _select(table: CopiedTable) -> str:
    columns = (
        f"({expression})::{table.target.c[name].type.compile(dialect=_DIALECT)} AS {name}"
        for name, expression in table.columns.items()
    )
    return f"SELECT {', '.join(columns)} FROM {table.rows} {table.joins}"  # noqa: S608


def _within_years(table: CopiedTable, query: str) -> str:
    """``query`` with moments and days that Python can hold; PostgreSQL has some before year 1 and after 9999."""
    columns = [
        f"CASE WHEN {name} < '0001-01-02' THEN '0001-01-02' WHEN {name} > '9999-12-30' THEN '9999-12-30'"
        f" ELSE {name} END AS {name}"
        if isinstance(table.target.c[name].type, Date | DateTime)
        else name
        for name in table.columns
    ]
    return f"SELECT {', '.join(columns)} FROM ({query}) AS found"  # noqa: S608


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
