"""Raw metrics, report by report (docs/reference/experiments.md 9.5)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, Text, bindparam, cast, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database, DriverConnection
from libs.db.tables.experiments import experiments
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from libs.errors import InvalidRequest, NotFound
from services.api.queries.prepared import PreparedQuery, given, one_of_given
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
    page_rows = min(size or PAGE_ROWS, PAGE_ROWS)
    if len(wanted) > 1:
        async with db.read_prepared() as connection:
            await _check_known(connection, wanted)
    for trial_id in wanted:
        async with db.read_prepared() as connection:
            # Of most trials this is all.
            rows = await _FIRST.records(connection, trial=trial_id, group=group, limit=page_rows + 1)
            ids = [] if len(rows) <= page_rows else await _ids(connection, trial_id, group)
            if not rows and len(wanted) == 1:
                await _check_known(connection, wanted)
        if 0 < len(rows) <= page_rows:
            yield [GetMetricsResponse(metrics=[as_report(row) for row in rows])]
        for start in range(0, len(ids), page_rows):
            async with db.read_prepared() as connection:
                page = await _reports(connection, trial_id, ids[start : start + page_rows])
            if page:
                yield [GetMetricsResponse(metrics=page)]


async def _check_known(connection: DriverConnection, trial_ids: Sequence[int]) -> None:
    known = {row.id for row in await _KNOWN.rows(connection, trials=trial_ids)}
    for trial_id in trial_ids:
        if trial_id not in known:
            raise NotFound("trial", trial_id)


async def _ids(connection: DriverConnection, trial_id: int, group: str) -> list[int]:
    """Of all reports of a trial, in their order."""
    return [row["id"] for row in await _ROW_IDS.records(connection, trial=trial_id, group=group)]


_GROUP: Final = given("group", metrics.c.metric_group)
_KNOWN: Final = PreparedQuery(select(trials.c.id).where(one_of_given(trials.c.id, "trials")))
_OF_TRIAL: Final = (
    metrics.c.trial_id == given("trial", metrics.c.trial_id),
    # Of a deleted trial they are there for a while.
    select(trials.c.id).where(trials.c.id == given("trial", metrics.c.trial_id)).exists(),
    ~metrics.c.archived,
    or_(_GROUP == "", metrics.c.metric_group == _GROUP),
)
_ORDER: Final = (metrics.c.trial_run_id, metrics.c.total_batches, metrics.c.id)
_ROW_IDS: Final = PreparedQuery(select(metrics.c.id).where(*_OF_TRIAL).order_by(*_ORDER))
_FIRST: Final = PreparedQuery(
    select(*REPORT_COLUMNS).where(*_OF_TRIAL).order_by(*_ORDER).limit(bindparam("limit", None, type_=BigInteger))
)
_REPORTS: Final = PreparedQuery(
    select(*REPORT_COLUMNS).where(
        metrics.c.trial_id == given("trial", metrics.c.trial_id), one_of_given(metrics.c.id, "ids"), ~metrics.c.archived
    )
)


async def _reports(connection: DriverConnection, trial_id: int, ids: Sequence[int]) -> list[MetricsReport]:
    """Those of ``ids`` that were not rolled back since, in the same order."""
    by_id = {row["id"]: row for row in await _REPORTS.records(connection, trial=trial_id, ids=ids)}
    return [as_report(row) for ident in ids if (row := by_id.get(ident)) is not None]


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
