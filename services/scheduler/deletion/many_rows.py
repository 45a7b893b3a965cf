"""Deletes log lines, metrics and what charts keep of them, of which there may be millions: some at a time, each part in
a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import text

from libs.db.engine import Database
from libs.db.levels.deletion import delete_some_levels

ROWS_AT_ONCE: Final = 10_000
"""That one transaction deletes."""
OWNERS_AT_ONCE: Final = 500
"""Tasks or trials whose rows one statement looks for: there may be a hundred thousand."""


async def delete_lines(db: Database, task_ids: Sequence[str]) -> None:
    """Delete the log lines of these tasks."""
    await _delete(db, "task_logs", "task_id, id, ingested_at", "task_id", task_ids)


async def delete_metrics(db: Database, trial_ids: Sequence[int]) -> None:
    """Delete the metrics of these trials, and before them what was made of them for charts."""
    for start in range(0, len(trial_ids), OWNERS_AT_ONCE):
        await _delete_levels(db, trial_ids[start : start + OWNERS_AT_ONCE])
    await _delete(db, "metrics", "trial_id, id", "trial_id", trial_ids)


async def _delete_levels(db: Database, trial_ids: Sequence[int]) -> None:
    while True:
        async with db.transaction() as connection:
            if not await delete_some_levels(connection, trial_ids):
                break


async def _delete(db: Database, table: str, key: str, column: str, owners: Sequence[str | int]) -> None:
    statement = text(
        f"DELETE FROM {table} WHERE ({key}) IN"  # noqa: S608  # names from this module
        f" (SELECT {key} FROM {table} WHERE {column} = ANY(:owners) LIMIT {ROWS_AT_ONCE})"
    )
    for start in range(0, len(owners), OWNERS_AT_ONCE):
        some = {"owners": owners[start : start + OWNERS_AT_ONCE]}
        while True:
            async with db.transaction() as connection:
                if (await connection.execute(statement, some)).rowcount < ROWS_AT_ONCE:
                    break
