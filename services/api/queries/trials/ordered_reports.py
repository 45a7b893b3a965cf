"""The reports of a trial by run, step and id, however many there are: the next ones cost what they are.

A report takes back what earlier runs have reported behind it (``services/api/metrics/rollback.py``), so that runs do
not go down where steps go up, and the index by step has the reports of each group in the order of runs as well.
Profiling, which has no steps and takes nothing back, is sorted by itself.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from libs.db.engine import Database

Row = Mapping[Any, Any]
FEW: Final = 20
"""Reports that are read of each group at once at least."""

_COLUMNS: Final = "id, trial_id, trial_run_id, metric_group, total_batches, end_time, metrics"
_SHOWN: Final = "id, trial_id, trial_run_id, metric_group, total_batches, end_time, metrics::text AS metrics"
# If the trial were known when a statement is planned, it would be planned anew each time (``prepared.hidden``).
_OF_TRIAL: Final = "trial_id = (SELECT $1::bigint) AND NOT archived"
_ORDINARY: Final = f"{_OF_TRIAL} AND kind <> 'PROFILING'"
_PROFILING: Final = f"{_OF_TRIAL} AND kind = 'PROFILING'"
_BY_STEP: Final = "total_batches, trial_run_id, id"
_BY_RUN: Final = "trial_run_id, total_batches, id"
_EACH_GROUP: Final = f"""
WITH RECURSIVE each_group (metric_group) AS (
       SELECT min(metric_group) FROM metrics WHERE {_ORDINARY}
        UNION ALL
       SELECT (SELECT min(metric_group) FROM metrics WHERE {_ORDINARY} AND metric_group > each_group.metric_group)
         FROM each_group
        WHERE metric_group IS NOT NULL)
"""  # noqa: S608  (of constants)
_GROUPS: Final = _EACH_GROUP + "SELECT metric_group FROM each_group WHERE metric_group IS NOT NULL"  # noqa: S608


def _first_sql(groups: str, of_group: str) -> str:
    """The first $2 reports with steps, and of profiling; of a deleted trial they are there for a while.

    If the database knew that the limit is above what most trials have, it would sort all reports of this one.
    """
    return f"""
SELECT {_SHOWN}, is_profiling
  FROM ((SELECT next.*, false AS is_profiling
           FROM {groups}
          CROSS JOIN LATERAL (
                SELECT {_COLUMNS} FROM metrics WHERE {_ORDINARY} AND metric_group = each_group.metric_group
                 ORDER BY total_batches LIMIT (SELECT $2::bigint)) AS next
          ORDER BY {_BY_STEP} LIMIT $2)
         UNION ALL
        (SELECT {_COLUMNS}, true FROM metrics WHERE {_PROFILING} {of_group} ORDER BY {_BY_RUN} LIMIT $2)) AS first
 WHERE EXISTS (SELECT FROM trials WHERE id = $1)"""  # noqa: S608  (of constants)


_FIRST: Final = _EACH_GROUP + _first_sql("each_group", "")
_FIRST_OF_GROUP: Final = _first_sql("(SELECT $3::text AS metric_group) AS each_group", "AND metric_group = $3")
_NEXT: Final = f"""
SELECT {_SHOWN}
  FROM unnest($2::text[]) AS each_group (name)
 CROSS JOIN LATERAL (
       SELECT {_COLUMNS} FROM metrics
        WHERE {_ORDINARY} AND metric_group = each_group.name AND id <= $6
          AND total_batches >= $3 AND ({_BY_STEP}) > ($3::integer, $4::integer, $5::bigint)
        ORDER BY total_batches LIMIT (SELECT $7::bigint)) AS next
"""  # noqa: S608  (of constants)
# Those that are stored later have greater ids.
_NEWEST_ID: Final = "SELECT last_value FROM metrics_id_seq"
_PROFILING_IDS: Final = f"""
SELECT id FROM metrics WHERE {_PROFILING} AND ($2::text = '' OR metric_group = $2) AND id <= $3 ORDER BY {_BY_RUN}
"""  # noqa: S608  (of constants)
_BY_ID: Final = f"SELECT {_SHOWN} FROM metrics WHERE {_PROFILING} AND id = ANY($2::bigint[])"  # noqa: S608


async def ordered_reports(db: Database, trial_id: int, group: str, *, at_once: int) -> AsyncIterator[Sequence[Row]]:
    """The reports that were not taken back, all at first or ``at_once`` again and again: in the order of
    runs, within one by step, those without one last, and then by id.

    group  '' is every group, profiling included
    Each has the columns of a report, ``metrics`` as text. Those that are there when the first are asked for are read;
    none is skipped or repeated. No connection is held in between.
    """
    async with db.read_prepared() as connection:
        sql, given = (_FIRST_OF_GROUP, [group]) if group else (_FIRST, [])
        rows = await connection.fetch(sql, trial_id, at_once + 1, *given)
        if len(rows) > at_once:
            groups = [group] if group else [row["metric_group"] for row in await connection.fetch(_GROUPS, trial_id)]
            [[newest]] = await connection.fetch(_NEWEST_ID)
    if len(rows) <= at_once:
        if rows:
            yield sorted(rows, key=_place)
        return
    begin = sorted((row for row in rows if not row["is_profiling"]), key=_step)
    reports = _Reports(db, trial_id, group, newest, at_once)
    waiting: list[Row] = []
    async for more in _merged(reports.with_steps(groups, begin), reports.profiling(exist=len(begin) < len(rows))):
        waiting.extend(more)
        while len(waiting) >= at_once:
            yield waiting[:at_once]
            del waiting[:at_once]
    if waiting:
        yield waiting


class _Reports(Struct, frozen=True):
    """Those of a trial with ids up to ``newest``."""

    db: Database
    trial_id: int
    group: str
    newest: int
    at_once: int

    async def with_steps(self, groups: Sequence[str], begin: list[Row]) -> AsyncIterator[list[Row]]:
        """begin  the first of them, perhaps all"""
        limit = max(self.at_once // max(len(groups), 1), FEW)
        rows = begin
        while rows:
            yield rows
            after = _step(rows[-1])
            async with self.db.read_prepared() as connection:
                found = await connection.fetch(_NEXT, self.trial_id, groups, *after, self.newest, limit)
            rows = _complete(found, limit)

    async def profiling(self, *, exist: bool) -> AsyncIterator[list[Row]]:
        """exist  whether there are some"""
        if not exist:
            return
        async with self.db.read_prepared() as connection:
            found = await connection.fetch(_PROFILING_IDS, self.trial_id, self.group, self.newest)
        ids = [row["id"] for row in found]
        for start in range(0, len(ids), self.at_once):
            async with self.db.read_prepared() as connection:
                rows = await connection.fetch(_BY_ID, self.trial_id, ids[start : start + self.at_once])
            if rows:  # they may have been deleted meanwhile
                yield sorted(rows, key=_place)


def _complete(found: Iterable[Row], limit: int) -> list[Row]:
    """Those of the next rows of each group before which no group has others: of one with ``limit`` rows, there may be
    more behind the last."""
    rows = sorted(found, key=_step)
    counts = Counter(row["metric_group"] for row in rows)
    seen: Counter[str] = Counter()
    for number, row in enumerate(rows, start=1):
        seen[row["metric_group"]] += 1
        if seen[row["metric_group"]] == counts[row["metric_group"]] == limit:
            return rows[:number]
    return rows


async def _merged(first: AsyncIterator[list[Row]], second: AsyncIterator[list[Row]]) -> AsyncIterator[list[Row]]:
    """The rows of two streams that are in order, in order."""
    nothing: list[Row] = []
    rows, others = await anext(first, nothing), await anext(second, nothing)
    while rows and others:
        if _place(rows[0]) > _place(others[0]):
            first, second, rows, others = second, first, others, rows
        count = bisect_left(rows, _place(others[0]), lo=1, key=_place)
        yield rows[:count]
        rows = rows[count:] or await anext(first, nothing)
    for left, more in ((rows, first), (others, second)):
        if left:
            yield left
        async for rows in more:
            yield rows


def _step(row: Row) -> tuple[int, int, int]:
    return row["total_batches"], row["trial_run_id"], row["id"]


def _place(row: Row) -> tuple[int, float, int]:
    step = row["total_batches"]
    return row["trial_run_id"], math.inf if step is None else step, row["id"]
