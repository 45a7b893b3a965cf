"""The best trials of a search and their series, as they change (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import part, prefers_small
from libs.config.stored import text_in as text_at
from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.errors import InvalidRequest
from services.api.metrics.groups import summary_key
from services.api.queries.charts.groups import points_per_series
from services.api.queries.charts.points import WantedSeries, read_points
from services.api.queries.charts.seen_rows import SeenRows
from services.api.queries.metric_values import number_in
from services.api.queries.search.documents import at, text_in
from services.api.queries.summaries import present_series, total_batches_of
from services.api.wire.base import struct_value
from services.api.wire.charts.streams import SampleTrial, TrialsSampleQuery, TrialsSampleResponse

DEFAULT_TRIALS: Final = 25
DEFAULT_POINTS: Final = 1000
MOST_TRIALS: Final = 1000
_BY_TRAINING: Final = ("adaptive_asha", "async_halving")


class TrialsSample:
    """What one stream has told: who is among the best, and which reports of each trial."""

    def __init__(self, db: Database, experiment_id: int, *, group: str, query: TrialsSampleQuery) -> None:
        """Raises InvalidRequest."""
        if query.max_trials < 0 or query.start_batches < 0 or query.end_batches < 0:
            raise InvalidRequest("maxTrials, startBatches and endBatches must not be negative")
        self._db = db
        self._experiment_id = experiment_id
        self._most_trials = min(query.max_trials or DEFAULT_TRIALS, MOST_TRIALS)
        self._most_points = points_per_series(query.max_datapoints, DEFAULT_POINTS, series=self._most_trials)
        self._wanted = WantedSeries(
            group=group,
            names=[query.metric_name],
            first_batches=query.start_batches,
            last_batches=query.end_batches,
        )
        self._seen: dict[int, SeenRows] = {}
        self._is_first = True

    async def look(self) -> AsyncIterator[Sequence[TrialsSampleResponse]]:
        """What is new; the first time also when nothing is. Raises InvalidRequest for a metric without an order."""
        async with self._db.read() as connection:
            best = await self._best(connection)
        ids = {trial.id for trial in best}
        promoted = [trial.id for trial in best if trial.id not in self._seen]
        demoted = sorted(set(self._seen) - ids)
        for trial_id in demoted:
            del self._seen[trial_id]
        data = [sample for trial in best if (sample := await self._series(trial)) is not None]
        if data or promoted or demoted or self._is_first:
            self._is_first = False
            yield [TrialsSampleResponse(trials=data, promoted_trials=promoted, demoted_trials=demoted)]

    async def _series(self, trial: Any) -> SampleTrial | None:
        """All of a trial that is new here, of others what was reported since; None for nothing."""
        is_new = trial.id not in self._seen
        seen = self._seen.setdefault(trial.id, SeenRows())
        async with self._db.transaction() as connection:
            points = await read_points(connection, trial.id, self._wanted, limit=self._most_points, seen=seen)
        if not points and not is_new:
            return None
        return SampleTrial(trial_id=trial.id, hparams=struct_value(trial.hparams), data=points)

    async def _best(self, connection: AsyncConnection) -> Sequence[Any]:
        config = await connection.scalar(select(experiments.c.config).where(experiments.c.id == self._experiment_id))
        if config is None:  # deleted
            return []
        searcher = part(config, "searcher")
        if searcher.get("name") == "single":
            raise InvalidRequest("a search of a single trial has no sample of its trials")
        if text_at(searcher, "name") in _BY_TRAINING:
            return await longest_trained(connection, self._experiment_id, limit=self._most_trials)
        return await best_by_metric(
            connection,
            self._experiment_id,
            group=self._wanted.group,
            name=self._wanted.names[0],
            smaller_is_better=prefers_small(config),
            limit=self._most_trials,
        )


async def longest_trained(connection: AsyncConnection, experiment_id: int, *, limit: int) -> Sequence[Any]:
    """The trials that early stopping has let train most: id and hparams."""
    found = select(trials.c.id, trials.c.hparams).where(trials.c.experiment_id == experiment_id)
    return (await connection.execute(found.order_by(total_batches_of().desc(), trials.c.id).limit(limit))).all()


async def best_by_metric(
    connection: AsyncConnection, experiment_id: int, *, group: str, name: str, smaller_is_better: bool, limit: int
) -> Sequence[Any]:
    """The trials by their best value of a metric: id and hparams. NaN is greater than everything, none comes last.

    Raises InvalidRequest when a trial has reported something else than numbers.
    """
    present = await present_series(connection, [(group, name)], experiment_ids=[experiment_id])
    summary, path = present.of(trials.c.summary_metrics), (summary_key(group), name)
    mine = trials.c.experiment_id == experiment_id
    other = select(trials.c.id).where(mine, text_in(at(summary, (*path, "type"))) != "number").limit(1)
    if (trial_id := await connection.scalar(other)) is not None:
        raise InvalidRequest(f"metricName: '{name[:80]}' is not numeric, trial {trial_id} has reported something else")
    value = number_in(at(summary, (*path, "min" if smaller_is_better else "max")))
    order = (value.asc() if smaller_is_better else value.desc()).nulls_last()
    return (
        await connection.execute(
            select(trials.c.id, trials.c.hparams).where(mine).order_by(order, trials.c.id).limit(limit)
        )
    ).all()
