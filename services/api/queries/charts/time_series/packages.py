"""Reads series packed: steps and numbers of thousands of reports come as one array and one text.

Within a group of a trial the step identifies a report (``uq_metrics_step``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from libs.searchers.reports import read_number
from services.api.queries.charts.groups import key_of
from services.api.queries.charts.time_series.conditions import RowCondition
from services.api.queries.charts.time_series.extremes import Numbers

MOST_COLUMNS: Final = 100
"""Metrics that one statement reads."""
OF_GROUP: Final = """
          FROM metrics
         WHERE trial_id = $1 AND metric_group = $2 AND NOT archived AND kind <> 'PROFILING'"""
_decode_numbers: Final = msgspec.json.Decoder(list[float | None]).decode


class PackedSeries:
    """The reports of one group of a trial that have one of some metrics, and fulfil all conditions.

    driver      an asyncpg connection
    names       each once
    conditions  columns are those of ``report`` in ``_source``
    """

    def __init__(
        self, driver: Any, trial_id: int, group: str, names: list[str], conditions: Sequence[RowCondition] = ()
    ) -> None:
        self._driver = driver
        self._names = names
        self._shapes = tuple((each.column, each.operator, each.kind) for each in conditions)
        self._given = [trial_id, group, key_of(group), names, *(each.value for each in conditions)]

    async def package(self, first: int, last: int, at_once: int) -> tuple[list[int], list[Numbers]]:
        """The first ``at_once`` steps from ``first`` to ``last``, and the numbers of each metric there: what is finite
        as a float, None for anything else."""
        steps: list[int] = []
        columns: list[Numbers] = []
        for start in range(0, len(self._names), MOST_COLUMNS):
            names = self._names[start : start + MOST_COLUMNS]
            sql = _package_sql(len(names), self._shapes)
            row = await self._driver.fetchrow(sql, *self._given, first, last, at_once, names)
            steps = row[0] or []
            columns.extend(numbers_in(text) for text in row[1:] if text is not None)
        return steps, columns

    async def count(self, first: int, last: int) -> int:
        """How many reports there are from step ``first`` to ``last``."""
        count: int = await self._driver.fetchval(_count_sql(self._shapes), *self._given, first, last)
        return count


def numbers_in(text: str) -> Numbers:
    """Of a list of JSON: what is finite as a float, None for anything else."""
    try:
        return _decode_numbers(text)
    except msgspec.ValidationError:  # an integer that is too large for a float
        found = map(read_number, msgspec.json.decode(text))
        return [number if number is not None and math.isfinite(number) else None for number in found]


def _source(shapes: Sequence[tuple[str, str, str]]) -> tuple[str, int]:
    """Reports that have one of the metrics, and the number of the next parameter.

    The planner takes ``?|`` for something that is rarely so, and would sort all reports for the first of them.
    """
    where = "".join(
        f"\n   AND {column} {operator} (${number}::{kind})"
        for number, (column, operator, kind) in enumerate(shapes, start=5)
    )
    first = 5 + len(shapes)
    sql = f"""
  FROM (SELECT total_batches, end_time, metrics -> $3::text AS document{OF_GROUP}
           AND total_batches BETWEEN ${first}::int AND ${first + 1}::int) AS report
 WHERE CASE WHEN document ?| $4::text[] THEN true ELSE false END{where}"""
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
