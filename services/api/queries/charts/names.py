"""Which metrics experiments have (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Row, bindparam, select, text
from sqlalchemy.dialects.postgresql import JSONB

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from libs.natural_order.keys import natural_sort_key
from services.api.metrics.groups import TRAINING, VALIDATION, group_of_summary
from services.api.queries.summaries import present_summaries
from services.api.wire.charts.streams import MetricIdentifier, MetricNamesResponse

_NAMES = text("""
SELECT DISTINCT entry.key AS summary_key, named.name
  FROM trials
 CROSS JOIN jsonb_each(coalesce(:present -> trials.id::text, trials.summary_metrics)) AS entry
 CROSS JOIN jsonb_object_keys(CASE jsonb_typeof(entry.value) WHEN 'object' THEN entry.value ELSE '{}' END)
         AS named (name)
 WHERE trials.experiment_id = ANY(:ids)
""").bindparams(bindparam("ids", type_=ARRAY(BigInteger)), bindparam("present", type_=JSONB))


class MetricNames:
    """What one stream has told already."""

    def __init__(self, db: Database, experiment_ids: Sequence[int]) -> None:
        self._db = db
        self._ids = list(experiment_ids)
        self._searcher: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self._is_first = True

    async def look(self) -> AsyncIterator[Sequence[MetricNamesResponse]]:
        """The names that are new; the first time also when there are none."""
        async with self._db.read() as connection:
            searcher = experiments.c.config["searcher"]["metric"].astext
            named = await connection.execute(select(searcher).where(any_of(experiments.c.id, self._ids)))
            goals = sorted({name for name in named.scalars() if name} - self._searcher, key=natural_sort_key)
            present = await present_summaries(connection, experiment_ids=self._ids)
            found = await connection.execute(_NAMES, {"ids": self._ids, "present": present.by_text_id})
            rows = sorted(found, key=_by_names)
        pairs = [(group_of_summary(row.summary_key), row.name) for row in rows]
        new = [pair for pair in pairs if pair not in self._told]
        self._searcher.update(goals)
        self._told.update(new)
        if new or goals or self._is_first:
            self._is_first = False
            yield [
                MetricNamesResponse(
                    searcher_metrics=goals,
                    training_metrics=[name for group, name in new if group == TRAINING],
                    validation_metrics=[name for group, name in new if group == VALIDATION],
                    metric_names=[MetricIdentifier(group=group, name=name) for group, name in new],
                )
            ]


def _by_names(row: Row[Any]) -> tuple[str, str]:
    return natural_sort_key(row.summary_key), natural_sort_key(row.name)
