"""Deletes log lines, metrics and what charts keep of them, of which there may be millions: some at a time, each part in
a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import text

from libs.db.engine import Database

ROWS_AT_ONCE: Final = 10_000
"""That one transaction deletes."""
OWNERS_AT_ONCE: Final = 500
"""Tasks or trials whose rows one statement looks for: there may be a hundred thousand."""
CHUNKS_AT_ONCE: Final = 500
"""Each has 30 kB."""
# Whoever is making chunks stores them of the generation that it began with, or not at all: none behind those that are
# deleted now.
_GENERATION: Final = text(
    "UPDATE metric_levels SET generation = nextval('metric_generations') WHERE trial_id = ANY(:trials)"
)
# From the end of each series, so that what is left of one is what it begins with, as whoever reads it relies on.
_CHUNKS: Final = text("""
DELETE FROM metric_chunks
 WHERE (trial_id, metric_group, name_key, chunk_no) IN (
       SELECT trial_id, metric_group, name_key, chunk_no
         FROM metric_chunks
        WHERE trial_id = ANY(:trials)
        ORDER BY chunk_no DESC
        LIMIT :at_once)
""")
_LEVELS: Final = text("DELETE FROM metric_levels WHERE trial_id = ANY(:trials)")


async def delete_lines(db: Database, task_ids: Sequence[str]) -> None:
    """Delete the log lines of these tasks."""
    await _delete(db, "task_logs", "task_id, id, ingested_at", "task_id", task_ids)


async def delete_metrics(db: Database, trial_ids: Sequence[int]) -> None:
    """Delete the metrics of these trials, and before them what was made of them for charts."""
    for start in range(0, len(trial_ids), OWNERS_AT_ONCE):
        await _delete_levels(db, trial_ids[start : start + OWNERS_AT_ONCE])
    await _delete(db, "metrics", "trial_id, id", "trial_id", trial_ids)


async def _delete_levels(db: Database, trial_ids: Sequence[int]) -> None:
    """What somebody makes of these reports meanwhile is deleted with the last of it."""
    some = {"trials": trial_ids, "at_once": CHUNKS_AT_ONCE}
    while True:
        async with db.transaction() as connection:
            await connection.execute(_GENERATION, {"trials": trial_ids})
            if (await connection.execute(_CHUNKS, some)).rowcount < CHUNKS_AT_ONCE:
                await connection.execute(_LEVELS, {"trials": trial_ids})
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
