"""A metric of all trials at one point of their training (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, Text, bindparam, text

from libs.db.engine import Database
from libs.errors import InvalidRequest
from libs.searchers.reports import read_number
from services.api.queries.charts.groups import key_of
from services.api.wire.base import Double, double, struct_value
from services.api.wire.charts.streams import SnapshotTrial, TrialsSnapshotQuery, TrialsSnapshotResponse

MOST_MARGIN: Final = 100
_PAGE_TRIALS: Final = 1000
_SNAPSHOT = text("""
SELECT page.id, page.hparams, report.total_batches, report.value
  FROM (SELECT id, hparams FROM trials
         WHERE experiment_id = :experiment_id AND id > :after ORDER BY id LIMIT :page_trials) AS page
  LEFT JOIN LATERAL (
       SELECT total_batches, metrics -> :key -> :name AS value
         FROM metrics
        WHERE trial_id = page.id AND metric_group = :group AND NOT archived AND kind <> 'PROFILING'
          AND total_batches BETWEEN :batches - :margin AND :batches + :margin AND (metrics -> :key) ? :name
        ORDER BY abs(total_batches - :batches), total_batches
        LIMIT 1) AS report ON true
 ORDER BY page.id
""").bindparams(
    bindparam("key", type_=Text),
    bindparam("name", type_=Text),
    bindparam("batches", type_=BigInteger),
    bindparam("margin", type_=BigInteger),
)


class TrialsSnapshot:
    """What one stream has told of each trial."""

    def __init__(self, db: Database, experiment_id: int, *, group: str, query: TrialsSnapshotQuery) -> None:
        """Raises InvalidRequest."""
        if not 0 <= query.batches_margin <= MOST_MARGIN:
            raise InvalidRequest(f"batchesMargin: must be between 0 and {MOST_MARGIN}")
        if query.batches_processed < 0:
            raise InvalidRequest("batchesProcessed: must not be negative")
        self._db = db
        self._parameters: dict[str, Any] = {
            "experiment_id": experiment_id,
            "group": group,
            "key": key_of(group),
            "name": query.metric_name,
            "batches": query.batches_processed,
            "margin": query.batches_margin,
            "page_trials": _PAGE_TRIALS,
        }
        self._told: dict[int, tuple[int, Double]] = {}
        self._is_first = True

    async def look(self) -> AsyncIterator[Sequence[TrialsSnapshotResponse]]:
        """The trials that are new or have changed; the first time also when there are none."""
        after = 0
        while True:
            async with self._db.read() as connection:
                rows = (await connection.execute(_SNAPSHOT, {**self._parameters, "after": after})).all()
            changed = [trial for row in rows if (trial := self._if_changed(row)) is not None]
            if changed or self._is_first:
                self._is_first = False
                yield [TrialsSnapshotResponse(trials=changed)]
            if len(rows) < _PAGE_TRIALS:
                return
            after = rows[-1].id

    def _if_changed(self, row: Any) -> SnapshotTrial | None:
        number = read_number(row.value)
        if number is None:
            return None
        standing = (row.total_batches, double(number))
        if self._told.get(row.id) == standing:
            return None
        self._told[row.id] = standing
        return SnapshotTrial(
            trial_id=row.id,
            hparams=struct_value(row.hparams),
            metric=standing[1],
            batches_processed=row.total_batches,
        )
