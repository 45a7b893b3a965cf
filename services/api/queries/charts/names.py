"""Which metrics experiments have (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from libs.db.engine import Database
from libs.natural_order.keys import natural_sort_key
from services.api.metrics.groups import TRAINING, VALIDATION, group_of_summary
from services.api.queries.metric_types import OF_EXPERIMENTS, names_of
from services.api.wire.charts.streams import MetricIdentifier, MetricNamesResponse

_NAMES: Final = f"""
SELECT NULL AS summary_key, config -> 'searcher' ->> 'metric' AS name
  FROM experiments
 WHERE id = ANY((SELECT $1::bigint[])::bigint[])
 UNION ALL
SELECT key, name FROM ({names_of(OF_EXPERIMENTS)}) AS reported
"""  # noqa: S608  (of constants)
"""Of experiments, the names of their searcher metrics and, by the key of their group, all others."""


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
        async with self._db.read_prepared() as connection:
            rows = await connection.fetch(_NAMES, self._ids)
        searcher = {row["name"] for row in rows if row["summary_key"] is None and row["name"]}
        goals = sorted(searcher - self._searcher, key=natural_sort_key)
        named = [(row["summary_key"], row["name"]) for row in rows if row["summary_key"] is not None]
        pairs = [(group_of_summary(key), name) for key, name in sorted(named, key=_by_names)]
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


def _by_names(pair: tuple[str, str]) -> tuple[str, str]:
    summary_key, name = pair
    return natural_sort_key(summary_key), natural_sort_key(name)
