"""System metrics of a trial by series, while it runs (docs/reference/logs.md 11)."""

from __future__ import annotations

import asyncio
from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from libs.natural_order.keys import natural_sort_key
from services.api.metrics.groups import PROFILING_GROUPS
from services.api.metrics.profiling import OTHERS, TIMINGS, Series, group_of_series, readings_in
from services.api.queries.charts.seen_rows import LATE, SeenRows
from services.api.queries.charts.streaming import ROWS_AT_ONCE
from services.api.queries.trials.trials import check_trial_exists
from services.api.wire.base import double, timestamp
from services.api.wire.charts.profiler import (
    AvailableSeriesResponse,
    ProfilerBatch,
    ProfilerLabels,
    ProfilerMetricsResponse,
    ProfilerMetricType,
)

PAGE_ROWS: Final = 100
LOOK_AGAIN_S: Final = 5.0

_SERIES = text("""
SELECT DISTINCT report.metric_group, agent.key AS agent,
       CASE jsonb_typeof(entry.value) WHEN 'object' THEN entry.key ELSE '' END AS device,
       CASE jsonb_typeof(entry.value) WHEN 'object' THEN inside.key ELSE entry.key END AS name
  FROM metrics AS report
 CROSS JOIN jsonb_each(CASE jsonb_typeof(report.metrics) WHEN 'object' THEN report.metrics ELSE '{}' END) AS agent
 CROSS JOIN jsonb_each(CASE jsonb_typeof(agent.value) WHEN 'object' THEN agent.value ELSE '{}' END) AS entry
  LEFT JOIN jsonb_each(CASE jsonb_typeof(entry.value) WHEN 'object' THEN entry.value ELSE '{}' END) AS inside ON true
 WHERE report.trial_id = :trial_id AND report.kind = 'PROFILING' AND NOT report.archived
""")


async def available_series(
    db: Database, trial_id: int, *, follow: bool
) -> AsyncIterator[Sequence[AvailableSeriesResponse]]:
    """All series of a trial; with ``follow`` again whenever there are more, until it has ended. Raises NotFound."""
    async with db.read() as connection:
        await check_trial_exists(connection, trial_id)
    told: list[ProfilerLabels] | None = None
    while True:
        ended = not follow or await _has_ended(db, trial_id)
        async with db.read() as connection:
            rows = (await connection.execute(_SERIES, {"trial_id": trial_id})).all()
        found = [
            _labels(trial_id, row.metric_group, Series(row.name, row.agent, row.device))
            for row in sorted((row for row in rows if row.name is not None), key=_by_names)
        ]
        if found != told:
            told = found
            yield [AvailableSeriesResponse(labels=found)]
        if ended:
            return
        await asyncio.sleep(LOOK_AGAIN_S)


def _by_names(row: Row[Any]) -> list[str]:
    return [natural_sort_key(part) for part in (row.name, row.agent, row.device)]


async def profiler_metrics(
    db: Database, trial_id: int, wanted: ProfilerLabels, *, follow: bool
) -> AsyncIterator[Sequence[ProfilerMetricsResponse]]:
    """The readings of the series that fit ``wanted``, each message with readings of one; with ``follow`` also those to
    come until the trial has ended. Raises NotFound."""
    async with db.read() as connection:
        await check_trial_exists(connection, trial_id)
    seen = SeenRows()
    while True:
        ended = not follow or await _has_ended(db, trial_id)
        async with db.transaction() as connection:
            ids = await _row_ids(connection, trial_id, wanted.name, seen)
        for start in range(0, len(ids), PAGE_ROWS):
            page = ids[start : start + PAGE_ROWS]
            async with db.read() as connection:
                rows = await _rows(connection, trial_id, page)
            for row in rows:
                seen.add(row.id, row.end_time)
            if messages := list(_messages(trial_id, rows, wanted)):
                yield messages
        if ended:
            return
        await asyncio.sleep(LOOK_AGAIN_S)


async def _has_ended(db: Database, trial_id: int) -> bool:
    """A trial that is not there any more has ended."""
    goes_on = select(trials.c.id).where(trials.c.id == trial_id, trials.c.end_time.is_(None))
    async with db.read() as connection:
        return await connection.scalar(goes_on) is None


async def _row_ids(connection: AsyncConnection, trial_id: int, name: str, seen: SeenRows) -> array[int]:
    """Rows that were not seen and may have readings of the name ('': of any), eight bytes for each."""
    columns, recent = metrics.c, seen.recent
    conditions: list[ColumnElement[bool]] = [
        columns.trial_id == trial_id,
        columns.kind == "PROFILING",
        ~columns.archived,
        columns.id > seen.floor_id,
        ~any_of(columns.id, recent),
    ]
    if name:
        groups = {group_of_series(name), TIMINGS, OTHERS}
        # A name that the harness does not use may be in any group.
        known = groups if group_of_series(name) != OTHERS else groups | PROFILING_GROUPS
        conditions.append(any_of(columns.metric_group, sorted(known)))
    if seen.newest is not None:
        conditions.append(columns.end_time > seen.newest - LATE)
    ids = array("q")
    found = await connection.stream(select(columns.id).where(*conditions).order_by(columns.id))
    async for rows in found.partitions(ROWS_AT_ONCE):
        ids.extend(row.id for row in rows)
    return ids


async def _rows(connection: AsyncConnection, trial_id: int, ids: Sequence[int]) -> Sequence[Any]:
    found = select(metrics.c.id, metrics.c.end_time, metrics.c.metric_group, metrics.c.metrics).where(
        metrics.c.trial_id == trial_id, any_of(metrics.c.id, ids)
    )
    return (await connection.execute(found.order_by(metrics.c.id))).all()


def _messages(trial_id: int, rows: Sequence[Any], wanted: ProfilerLabels) -> Iterator[ProfilerMetricsResponse]:
    by_series: dict[tuple[str, Series], list[tuple[datetime, float]]] = defaultdict(list)
    for row in rows:
        for reading in readings_in(row.metrics):
            if _fits(reading.series, row.metric_group, wanted):
                by_series[row.metric_group, reading.series].append((row.end_time, reading.value))
    for (group, series), readings in sorted(by_series.items()):
        yield ProfilerMetricsResponse(
            batch=ProfilerBatch(
                values=[double(value) for _, value in readings],
                batches=[0] * len(readings),
                timestamps=[timestamp(moment) for moment, _ in readings],
                labels=_labels(trial_id, group, series),
            )
        )


def _fits(series: Series, group: str, wanted: ProfilerLabels) -> bool:
    return (
        wanted.name in ("", series.name)
        and wanted.agent_id in ("", series.agent)
        and wanted.gpu_uuid in ("", series.device)
        and wanted.metric_type in (ProfilerMetricType.UNSPECIFIED, _type_of(group))
    )


def _labels(trial_id: int, group: str, series: Series) -> ProfilerLabels:
    return ProfilerLabels(
        trial_id=trial_id,
        name=series.name,
        agent_id=series.agent,
        gpu_uuid=series.device,
        metric_type=_type_of(group),
    )


def _type_of(group: str) -> ProfilerMetricType:
    if group in PROFILING_GROUPS:
        return ProfilerMetricType.SYSTEM
    return ProfilerMetricType.TIMING if group == TIMINGS else ProfilerMetricType.MISC
