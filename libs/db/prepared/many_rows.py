"""Statements that write any number of rows with the same columns, each column as one parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Table
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from libs.db.prepared.statements import PreparedStatement, as_document

KEY: Final = "the_key"
"""Parameter of ``update_of`` with the keys that the rows have."""
_DIALECT: Final = PGDialect_asyncpg()  # type: ignore[no-untyped-call]


@cache
def insert_of(table: Table, names: tuple[str, ...]) -> PreparedStatement:
    """Inserts rows of these columns, in the order of the lists."""
    return PreparedStatement(
        f"INSERT INTO {table.name} ({', '.join(names)}) "  # noqa: S608
        f"SELECT {', '.join(_value(table, name) for name in names)} FROM {_given(table, names)} ORDER BY place"
    )


@cache
def update_of(table: Table, key: str, names: tuple[str, ...]) -> PreparedStatement:
    """Sets these columns of the rows whose keys are ``KEY``."""
    assigned = ", ".join(f"{name} = {_value(table, name)}" for name in names)
    given = _given(table, names, key)
    return PreparedStatement(
        f"UPDATE {table.name} SET {assigned} FROM {given} WHERE {table.name}.{key} = given.{KEY}"  # noqa: S608
    )


def as_columns(table: Table, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The parameters: a list for each column, and for the keys if there are any."""
    columns = {name: [row[name] for row in rows] for name in names}
    for name in names:
        if _is_document(table, name):
            columns[name] = [None if value is None else as_document(value) for value in columns[name]]
    return columns if not rows or KEY not in rows[0] else {**columns, KEY: [row[KEY] for row in rows]}


def _given(table: Table, names: Sequence[str], key: str | None = None) -> str:
    parameters = [f":{name}::{_type(table, name)}[]" for name in names]
    columns = list(names)
    if key is not None:
        parameters.append(f":{KEY}::{_type(table, key)}[]")
        columns.append(KEY)
    return f"unnest({', '.join(parameters)}) WITH ORDINALITY AS given ({', '.join(columns)}, place)"


def _value(table: Table, name: str) -> str:
    return f"given.{name}::jsonb" if _is_document(table, name) else f"given.{name}"


def _type(table: Table, name: str) -> str:
    return "text" if _is_document(table, name) else str(table.c[name].type.compile(dialect=_DIALECT))


def _is_document(table: Table, name: str) -> bool:
    return isinstance(table.c[name].type, JSONB)
