"""The one exception of an import: what stands in its way, and what to do about it."""

from __future__ import annotations

import asyncpg

from libs.errors import ResoluteError


class ImportRefused(ResoluteError):
    """The import cannot begin or go on; the message is for whoever started it."""


def without_rows(error: asyncpg.PostgresError) -> str:
    """What PostgreSQL says, with the names of table, column and constraint, and without the values of rows: a password
    hash may be among them. Keys that refer to nothing, or that are there twice, are said."""
    places = {"table": error.table_name, "column": error.column_name, "constraint": error.constraint_name}
    named = ", ".join(f"{what} {name}" for what, name in places.items() if name)
    is_key = isinstance(error, asyncpg.ForeignKeyViolationError | asyncpg.UniqueViolationError)
    parts = (
        error.args[0],
        f"({named})" if named else "",
        f": {error.detail.rstrip('.')}" if is_key and error.detail else "",
    )
    return " ".join(part for part in parts[:2] if part) + parts[2]
