"""Raw metrics, report by report (docs/reference/experiments.md 9.5)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Text, cast, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from libs.errors import InvalidRequest, NotFound
from services.api.queries.prepared import PreparedQuery, one_of_given
from services.api.queries.trials.ordered_reports import ordered_reports
from services.api.wire.base import struct_text, timestamp_ms
from services.api.wire.trials.metrics import GetMetricsResponse, MetricsReport

PAGE_ROWS: Final = 1000
REPORT_COLUMNS: Final = (
    metrics.c.id,
    metrics.c.trial_id,
    metrics.c.trial_run_id,
    metrics.c.metric_group,
    metrics.c.total_batches,
    metrics.c.end_time,
    cast(metrics.c.metrics, Text).label("metrics"),
)
"""What ``as_report`` shows. Documents are texts, nearly all of which go out without a look at each value."""


async def read_metrics(
    db: Database, trial_ids: Sequence[int], *, group: str = "", size: int = 0
) -> AsyncIterator[Sequence[GetMetricsResponse]]:
    """The reports of trials that were not rolled back: by trial, run, step and time, in pages of ``size``.

    group  '' is every group, profiling included
    What is there when a trial's turn comes is read; no row is skipped or repeated at the edge of a page.
    Raises InvalidRequest without trials or for a negative size, NotFound for an unknown trial, before the first page.
    """
    if not trial_ids:
        raise InvalidRequest("must specify at least one trialId")
    if size < 0:
        raise InvalidRequest("size must be >= 0")
    wanted = sorted(set(trial_ids))
    if len(wanted) > 1:
        await _check_known(db, wanted)
    for trial_id in wanted:
        is_empty = True
        async for rows in ordered_reports(db, trial_id, group, at_once=min(size or PAGE_ROWS, PAGE_ROWS)):
            is_empty = False
            yield [GetMetricsResponse(metrics=[as_report(row) for row in rows])]
        if is_empty and len(wanted) == 1:
            await _check_known(db, wanted)


async def _check_known(db: Database, trial_ids: Sequence[int]) -> None:
    async with db.read_prepared() as connection:
        known = {row.id for row in await _KNOWN.rows(connection, trials=trial_ids)}
    for trial_id in trial_ids:
        if trial_id not in known:
            raise NotFound("trial", trial_id)


_KNOWN: Final = PreparedQuery(select(trials.c.id).where(one_of_given(trials.c.id, "trials")))


def as_report(row: Mapping[Any, Any]) -> MetricsReport:
    """A row of ``REPORT_COLUMNS`` as clients see it."""
    return MetricsReport(
        trial_id=row["trial_id"],
        end_time=timestamp_ms(row["end_time"]),
        metrics=struct_text(row["metrics"]),
        total_batches=row["total_batches"] or 0,
        id=row["id"],
        trial_run_id=row["trial_run_id"],
        group=row["metric_group"],
    )


async def best_searcher_metric(connection: AsyncConnection, experiment_id: int) -> float | None:
    """The best searcher metric of all trials of an experiment; None before the first. Raises NotFound."""
    if await connection.scalar(select(experiments.c.id).where(experiments.c.id == experiment_id)) is None:
        raise NotFound("experiment", experiment_id)
    best: float | None = await connection.scalar(
        select(trials.c.searcher_metric_value)
        .where(trials.c.experiment_id == experiment_id, trials.c.searcher_metric_signed.is_not(None))
        .order_by(trials.c.searcher_metric_signed, trials.c.id)
        .limit(1)
    )
    return best
