"""Metrics of several trials side by side (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET

from libs.db.engine import Database, driver_connection
from libs.errors import InvalidRequest
from services.api.metrics.groups import TRAINING, VALIDATION
from services.api.queries.charts.groups import group_of, points_per_series
from services.api.queries.charts.levels.making import LevelMaker
from services.api.queries.charts.points import WantedSeries, epoch_of
from services.api.queries.charts.time_series.compared_trials import load_compared_trials
from services.api.queries.charts.time_series.conditions import BATCHES, RowCondition
from services.api.queries.charts.time_series.kept_points import KeptPoints
from services.api.queries.charts.time_series.trial_series import groups_with_levels, read_trial_series
from services.api.wire.charts.series import (
    ComparableTrial,
    CompareTrialsQuery,
    DownsampledMetrics,
    TimeSeriesFilter,
)
from services.api.wire.trials.metrics import MetricType

DEFAULT_POINTS: Final = 200
_COMPARISONS: Final = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_TYPES: Final = {TRAINING: MetricType.TRAINING, VALIDATION: MetricType.VALIDATION}


async def compare_trials(
    db: Database, query: CompareTrialsQuery, *, now: datetime, maker: LevelMaker, kept: KeptPoints
) -> list[ComparableTrial]:
    """The trials in the order asked for, each with the series of those groups that have something.

    Raises InvalidRequest, NotFound for a trial.
    """
    if not query.trial_ids:
        raise InvalidRequest("must specify at least one trialId")
    if query.start_batches < 0 or query.end_batches < 0:
        raise InvalidRequest("startBatches and endBatches must not be negative")
    ids = list(dict.fromkeys(query.trial_ids))
    series = wanted_series(query)
    conditions = list(filter_conditions(query.time_series_filter))
    limit = points_per_series(query.max_datapoints, DEFAULT_POINTS, series=len(ids) * len(series))
    async with db.read() as connection:
        found = await load_compared_trials(connection, ids, now=now)
        levels = await groups_with_levels(await driver_connection(connection), ids)
    compared = []
    for trial in found:
        # Of each trial anew: many that are compared at once would keep a connection and a snapshot for long.
        read = await read_trial_series(
            lambda: driver_of(db),
            trial.id,
            series,
            has_ended=trial.end_time is not None,
            limit=limit,
            conditions=conditions,
            with_levels=levels.get(trial.id, ()),
            maker=maker,
            kept=kept,
        )
        metrics = [
            DownsampledMetrics(data=points, type=_TYPES.get(group, MetricType.UNSPECIFIED), group=group)
            for group, points in read
            if points
        ]
        compared.append(ComparableTrial(trial=trial, metrics=metrics))
    return compared


@asynccontextmanager
async def driver_of(db: Database) -> AsyncIterator[Any]:
    """A connection of the driver, outside of a transaction."""
    async with db.read() as connection:
        yield await driver_connection(connection)


def wanted_series(query: CompareTrialsQuery) -> list[WantedSeries]:
    """What to read of every trial, by group. Raises InvalidRequest."""
    if query.metric_names and query.metric_ids:
        raise InvalidRequest("specify either metricNames or metricIds, not both")
    names: dict[str, list[str]] = {}
    for ident in query.metric_ids:
        group, dot, name = ident.partition(".")
        if not (group and dot and name):
            raise InvalidRequest(f"metricIds: expected <group>.<name>, got '{ident[:80]}'")
        names.setdefault(group, []).append(name)
    if query.metric_names:
        only = group_of(query.group, query.metric_type)
        for each in (TRAINING, VALIDATION) if only is None else (only,):
            names[each] = query.metric_names
    return [
        WantedSeries(
            group=group,
            names=names[group],
            first_batches=query.start_batches,
            last_batches=query.end_batches,
        )
        for group in sorted(names)
    ]


def filter_conditions(wanted: TimeSeriesFilter) -> Iterator[RowCondition]:
    """A filter as conditions, all of which hold. Raises InvalidRequest for one that does not fit its column."""
    numbers = [*_limits(wanted.double_range), *_limits(wanted.integer_range)]
    times = list(_limits(wanted.time_range))
    sets = [("= ANY", wanted.integer_range.incl), ("<> ALL", wanted.integer_range.not_in)]
    if not (wanted.name or numbers or times or any(values for _, values in sets)):
        return
    columns = {"batches": BATCHES, "epoch": f"({epoch_of('document')})", "time": "end_time"}
    if wanted.name not in columns:
        raise InvalidRequest(f"timeSeriesFilter.name: expected one of batches, epoch, time, got '{wanted.name[:80]}'")
    if wanted.name == "time" and (numbers or any(values for _, values in sets)):
        raise InvalidRequest("timeSeriesFilter: time has a timeRange, not numbers")
    if wanted.name != "time" and times:
        raise InvalidRequest(f"timeSeriesFilter: {wanted.name} has a doubleRange or an integerRange, not a timeRange")
    column = columns[wanted.name]
    kind = "timestamptz" if wanted.name == "time" else "double precision"
    for operator, value in (*numbers, *times):
        yield RowCondition(column, operator, kind, value)
    for operator, values in sets:
        if values:
            yield RowCondition(column, operator, "double precision[]", [float(value) for value in values])


def _limits(limits: Any) -> Iterator[tuple[str, Any]]:
    for name, operator in _COMPARISONS.items():
        value = getattr(limits, name)
        if value is not UNSET:
            yield operator, value if isinstance(value, datetime) else float(value)
