"""The points of one trial's series that a chart shows, chosen before any of them is read whole.

Steps and numbers of a series come packed, as one array and one text for thousands of reports; the reports at the chosen
steps are all that is read as rows. Within a group of a trial the step identifies a report (``uq_metrics_step``).
Source: docs/reference/experiments.md 9.6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from libs.searchers.reports import read_number
from services.api.queries.charts.groups import key_of
from services.api.queries.charts.points import MOST_BATCHES, WantedSeries, epoch_of
from services.api.queries.charts.time_series.extremes import ChosenSteps, Numbers
from services.api.wire.base import double, struct_value, timestamp
from services.api.wire.charts.series import DataPoint

PACKAGE_NUMBERS: Final = 50_000
"""In one answer of the database, which is in memory as a whole."""
_MOST_COLUMNS: Final = 100
_decode_numbers: Final = msgspec.json.Decoder(list[float | None]).decode


class RowCondition(Struct, frozen=True):
    """``column operator value`` in SQL, with the type of the value."""

    column: str
    operator: str
    kind: str
    value: Any


async def read_chosen_points(
    driver: Any,
    trial_id: int,
    wanted: WantedSeries,
    *,
    limit: int,
    conditions: Sequence[RowCondition] = (),
    package_numbers: int = PACKAGE_NUMBERS,
) -> list[DataPoint]:
    """At most ``limit`` of the reports that have one of the metrics, in the order of batches.

    driver           a connection of the driver in a transaction, in which all statements see the same reports
    conditions       all of them hold for the points; columns are those of ``report`` in ``_source``
    package_numbers  how many numbers come in one answer of the database
    """
    names = list(dict.fromkeys(wanted.names))
    choice = _Choice(driver, trial_id, wanted, names, conditions)
    steps = await choice.steps(limit=limit, at_once=max(1, package_numbers // min(len(names), _MOST_COLUMNS)))
    if not steps:
        return []
    key = key_of(wanted.group)
    if len(names) == 1:
        rows = await driver.fetch(_POINTS_OF_ONE, trial_id, wanted.group, key, steps, names[0])
    else:
        rows = await driver.fetch(_POINTS, trial_id, wanted.group, key, steps, names)
    alone = names[0] if len(names) == 1 else None
    return [_point(row, alone) for row in rows]


class _Choice:
    """Which steps of one series are shown."""

    def __init__(
        self, driver: Any, trial_id: int, wanted: WantedSeries, names: list[str], conditions: Sequence[RowCondition]
    ) -> None:
        self._driver = driver
        self._names = names
        self._shapes = tuple((each.column, each.operator, each.kind) for each in conditions)
        self._given = [trial_id, wanted.group, key_of(wanted.group), names, *(each.value for each in conditions)]
        self._first, self._last = wanted.first_batches, wanted.last_batches or MOST_BATCHES

    async def steps(self, *, limit: int, at_once: int) -> list[int]:
        """Ascending. at_once  how many steps come in one answer of the database"""
        steps, columns = await self._package(self._first, at_once)
        total = len(steps)
        if total == at_once:
            total = await self._driver.fetchval(_count_sql(self._shapes), *self._given, self._first, self._last)
        chosen = ChosenSteps(total=total, limit=limit, width=len(self._names))
        chosen.add(steps, columns)
        while len(steps) == at_once and steps[-1] < self._last:
            steps, columns = await self._package(steps[-1] + 1, at_once)
            chosen.add(steps, columns)
        return chosen.steps()

    async def _package(self, first: int, at_once: int) -> tuple[list[int], list[Numbers]]:
        """Steps from ``first`` on, and the numbers of each metric at these steps."""
        steps: list[int] = []
        columns: list[Numbers] = []
        for start in range(0, len(self._names), _MOST_COLUMNS):
            names = self._names[start : start + _MOST_COLUMNS]
            sql = _package_sql(len(names), self._shapes)
            row = await self._driver.fetchrow(sql, *self._given, first, self._last, at_once, names)
            steps = row[0] or []
            columns.extend(_numbers(text) for text in row[1:] if text is not None)
        return steps, columns


def _numbers(text: str) -> Numbers:
    """Of a list of JSON: what is finite as a float, None for anything else."""
    try:
        return _decode_numbers(text)
    except msgspec.ValidationError:  # an integer that is too large for a float
        found = map(read_number, msgspec.json.decode(text))
        return [number if number is not None and math.isfinite(number) else None for number in found]


def _point(row: Any, name: str | None) -> DataPoint:
    """name  whose number it is, of a series of one"""
    batches, end_time, numbers, epoch = row
    values = msgspec.json.decode(numbers)
    return DataPoint(
        batches=batches,
        values=struct_value(values) if name is None else {name: struct_value(values)},
        time=timestamp(end_time),
        epoch=UNSET if epoch is None else double(epoch),
    )


_OF_GROUP: Final = """
          FROM metrics
         WHERE trial_id = $1 AND metric_group = $2 AND NOT archived AND kind <> 'PROFILING'"""


def _source(shapes: Sequence[tuple[str, str, str]]) -> tuple[str, int]:
    """Reports that have one of the metrics, and the number of the next parameter."""
    where = "".join(
        f"\n   AND {column} {operator} (${number}::{kind})"
        for number, (column, operator, kind) in enumerate(shapes, start=5)
    )
    first = 5 + len(shapes)
    sql = f"""
  FROM (SELECT total_batches, end_time, metrics -> $3::text AS document{_OF_GROUP}
           AND total_batches BETWEEN ${first}::int AND ${first + 1}::int) AS report
 WHERE document ?| $4::text[]{where}"""
    return sql, first + 2


@lru_cache(maxsize=256)
def _package_sql(width: int, shapes: tuple[tuple[str, str, str], ...]) -> str:
    """Up to so many steps in their order, and as JSON the numbers of each of ``width`` metrics at these steps.

    What is no number is null, so that texts and documents do not travel.
    """
    source, number = _source(shapes)
    each = range(1, width + 1)
    values = "".join(f", document -> (${number + 1}::text[])[{n}] AS v{n}" for n in each)
    lists = "".join(
        f", '[' || string_agg(CASE jsonb_typeof(v{n}) WHEN 'number' THEN v{n}::text ELSE 'null' END, ',') || ']'"
        for n in each
    )
    return f"""
SELECT array_agg(total_batches){lists}
  FROM (SELECT total_batches{values}{source}
         ORDER BY total_batches LIMIT ${number}::bigint) AS package"""  # noqa: S608 - of constants


@lru_cache(maxsize=256)
def _count_sql(shapes: tuple[tuple[str, str, str], ...]) -> str:
    return f"SELECT count(*){_source(shapes)[0]}"


def _points_sql(numbers: str) -> str:
    return f"""
SELECT total_batches, end_time, {numbers} AS numbers, {epoch_of("document")} AS epoch
  FROM (SELECT total_batches, end_time, metrics -> $3::text AS document{_OF_GROUP}
           AND total_batches = ANY($4::int[])) AS report
 ORDER BY total_batches"""  # noqa: S608 - of constants


_POINTS_OF_ONE: Final = _points_sql("(document -> $5::text)::text")
_POINTS: Final = _points_sql(
    """(SELECT jsonb_object_agg(name, document -> name)::text
          FROM unnest($5::text[]) AS name WHERE document ? name)"""
)
