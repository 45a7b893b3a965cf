"""At which numbers of batches a metric was reported by any trial (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final

from sqlalchemy import Text, bindparam, text

from libs.db.engine import Database
from services.api.queries.charts.groups import key_of
from services.api.queries.charts.streaming import ROWS_AT_ONCE
from services.api.wire.charts.streams import MetricBatchesResponse

_MOST_PER_MESSAGE: Final = 10_000
_BATCHES = text("""
SELECT DISTINCT metrics.total_batches
  FROM trials
  JOIN metrics ON metrics.trial_id = trials.id
 WHERE trials.experiment_id = :experiment_id AND metrics.metric_group = :group AND NOT metrics.archived
   AND metrics.kind <> 'PROFILING' AND (metrics.metrics -> :key) ? :name
 ORDER BY 1
""").bindparams(bindparam("key", type_=Text), bindparam("name", type_=Text))


class MetricBatches:
    """What one stream has told already, four bytes for each number."""

    def __init__(self, db: Database, experiment_id: int, *, group: str, name: str) -> None:
        self._db = db
        self._parameters = {"experiment_id": experiment_id, "group": group, "key": key_of(group), "name": name}
        self._told = array("i")
        self._is_first = True

    async def look(self) -> AsyncIterator[Sequence[MetricBatchesResponse]]:
        """The numbers that are new; the first time also when there are none."""
        found = array("i")
        async with self._db.transaction() as connection:
            async for rows in (await connection.stream(_BATCHES, self._parameters)).partitions(ROWS_AT_ONCE):
                found.extend(row.total_batches for row in rows)
        told, self._told = self._told, found
        new = array("i", added(told, found))
        for start in range(0, len(new), _MOST_PER_MESSAGE):
            self._is_first = False
            yield [MetricBatchesResponse(batches=new[start : start + _MOST_PER_MESSAGE].tolist())]
        if self._is_first:
            self._is_first = False
            yield [MetricBatchesResponse()]


def added(before: Iterable[int], after: Iterable[int]) -> Iterator[int]:
    """The numbers of ``after`` that ``before`` does not have; both ascending, each number once."""
    rest = iter(before)
    old = next(rest, None)
    for number in after:
        while old is not None and old < number:
            old = next(rest, None)
        if old != number:
            yield number
