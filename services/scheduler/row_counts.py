"""Puts numbers of the same group together, so that totals of lists add up few, however many changes there were, and so
do those who look which parts of a project have changed.

Readers see the numbers before or after it, never between: it is one statement, and the sum is the same. Where nobody
has done so for days, as while the release before was back, there are millions: these are taken some at a time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from sqlalchemy import Table, TextClause, text

from libs.db.engine import Database
from libs.db.tables.experiments import experiment_counts, label_counts, project_changes
from libs.db.tables.trials import archived_trial_counts, trial_counts
from services.scheduler.archived_trials import count_archived
from services.scheduler.workqueue.loops import run_periodically

EVERY_S: Final = 20.0
MANY: Final = 50_000
"""Rows of a table that are put together in one statement."""
_BEHIND: Final = "ctid > CAST(CAST(:after AS text) AS tid)"


class RowCounts:
    """Two that do it at once take different rows: of those that the other has deleted, a deletion returns none."""

    def __init__(self, *, db: Database) -> None:
        self._db = db

    async def run(self) -> None:
        """Now and then, until cancelled."""
        await run_periodically("row counts", self.put_together, every_s=EVERY_S, wake=asyncio.Event())

    async def put_together(self, *, many: int = MANY) -> None:
        for table in _COUNTS:
            await self._put_together(table, many)
        async with self._db.transaction() as connection:
            await connection.execute(_LABELS)
        await count_archived(self._db)

    async def _put_together(self, table: Table, many: int) -> None:
        async with self._db.transaction() as connection:
            if not await connection.scalar(_has_more(table), {"many": many}):
                await connection.execute(_of(table))
                return
        # In the order of the file, at whose end what was taken comes again, as groups: fewer and fewer rows.
        after = "(0,0)"
        while True:
            async with self._db.transaction() as connection:
                place = {"after": after, "many": many}
                found, groups, last = (await connection.execute(_look_at(table), place)).one()
                if groups <= found // 2:
                    await connection.execute(_some_of(table), place)
            if found < many:
                return
            after = last


def _group_of(table: Table) -> str:
    return ", ".join(column.name for column in table.c if column.name != "number")


def _has_more(table: Table) -> TextClause:
    return text(f"SELECT EXISTS (SELECT FROM {table.name} OFFSET :many)")  # noqa: S608  a name of ours


def _look_at(table: Table) -> TextClause:
    """How many of the next rows there are, of how many groups, and the place of the last."""
    group = _group_of(table)
    return text(f"""
        SELECT count(*), count(DISTINCT ({group})), max(place)::text
          FROM (SELECT ctid AS place, {group} FROM {table.name} WHERE {_BEHIND} LIMIT :many) AS next
    """)  # noqa: S608  names of our own tables


def _some_of(table: Table) -> TextClause:
    return _merge(table, f"ctid = ANY(ARRAY(SELECT ctid FROM {table.name} WHERE {_BEHIND} LIMIT :many))")  # noqa: S608


def _of(table: Table) -> TextClause:
    group = _group_of(table)
    return _merge(
        table,
        f"({group}) IN (SELECT {group} FROM {table.name} GROUP BY {group} HAVING count(*) > 1)",  # noqa: S608
    )


def _merge(table: Table, condition: str) -> TextClause:
    """Makes one row of each group, out of the rows for which ``condition`` holds."""
    group = _group_of(table)
    return text(f"""
        WITH taken AS (
          DELETE FROM {table.name} WHERE {condition} RETURNING {group}, number
        )
        INSERT INTO {table.name} ({group}, number)
        SELECT {group}, sum(number) FROM taken GROUP BY {group} HAVING sum(number) <> 0
    """)  # noqa: S608  names of our own tables


def _of_labels() -> TextClause:
    """The same for a table that has as many groups as there are labels: only those with changes are read."""
    group = [column.name for column in label_counts.c if column.name not in {"number", "is_sum"}]
    names, same = ", ".join(group), " AND ".join(f"known.{each} = changed.{each}" for each in group)
    return text(f"""
        WITH taken AS (
          DELETE FROM label_counts AS known
           USING (SELECT DISTINCT {names} FROM label_counts WHERE NOT is_sum) AS changed
           WHERE {same} RETURNING {", ".join(f"known.{each}" for each in group)}, known.number
        )
        INSERT INTO label_counts ({names}, number, is_sum)
        SELECT {names}, sum(number), true FROM taken GROUP BY {names} HAVING sum(number) <> 0
    """)  # noqa: S608  names of our own tables


_COUNTS: Final = (experiment_counts, trial_counts, archived_trial_counts, project_changes)
_LABELS: Final = _of_labels()
