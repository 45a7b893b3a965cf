"""The points of one trial's series that a chart shows, chosen before any of them is read whole.

Steps and numbers of a series come packed: of a long one from its levels, of all others with thousands of reports in
one answer. The reports at the chosen steps are all that is read as rows.
Source: docs/reference/experiments.md 9.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from services.api.queries.charts.groups import key_of
from services.api.queries.charts.levels.packing import STORED, Shape
from services.api.queries.charts.levels.reading import SeriesLevels
from services.api.queries.charts.points import MOST_BATCHES, WantedSeries, epoch_of
from services.api.queries.charts.time_series.conditions import RowCondition, narrowed
from services.api.queries.charts.time_series.extremes import ChosenSteps, Numbers
from services.api.queries.charts.time_series.packages import MOST_COLUMNS, OF_GROUP, PackedSeries
from services.api.wire.base import double, struct_value, timestamp
from services.api.wire.charts.series import DataPoint

PACKAGE_NUMBERS: Final = 50_000
"""In one answer of the database, which is in memory as a whole."""
MANY_REPORTS: Final = 10_000
"""From so many on, a series without levels gets some: what it takes to read them is less than what making them does."""

MOST_WITH_LEVELS: Final = 20
"""Metrics drawn over the same points, up to which there are levels of them: each has its own."""


class LevelUse(Struct, frozen=True):
    """How levels serve a series.

    exist   there may be some
    most    from so many reports on, metrics without levels are refused to be read; None: they never are
    behind  the same for reports behind those that are in levels
    """

    exist: bool = False
    most: int | None = None
    behind: int | None = None
    shape: Shape = STORED


NO_LEVELS: Final = LevelUse()


class LevelsMissing(Exception):
    """Metrics have so many reports in no level that these should be made first."""

    def __init__(self, group: str, names: Sequence[str]) -> None:
        super().__init__(group, names)
        self.group = group
        self.names = names


async def read_chosen_points(
    driver: Any,
    trial_id: int,
    wanted: WantedSeries,
    *,
    limit: int,
    conditions: Sequence[RowCondition] = (),
    package_numbers: int = PACKAGE_NUMBERS,
    levels: LevelUse = NO_LEVELS,
) -> list[DataPoint]:
    """At most ``limit`` of the reports that have one of the metrics, in the order of batches.

    driver           a connection of the driver in a transaction, in which all statements see the same reports
    conditions       all of them hold for the points; columns are those of ``report`` in ``packages.py``
    package_numbers  how many numbers come in one answer of the database
    levels           of a few metrics, if all reports of a range of steps fulfil the conditions; others have none

    Raises LevelsMissing.
    """
    names = list(dict.fromkeys(wanted.names))
    choice = _Choice(driver, trial_id, wanted, names, conditions, levels=levels)
    steps = await choice.steps(limit=limit, at_once=max(1, package_numbers // min(len(names), MOST_COLUMNS)))
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
        self,
        driver: Any,
        trial_id: int,
        wanted: WantedSeries,
        names: list[str],
        conditions: Sequence[RowCondition],
        *,
        levels: LevelUse,
    ) -> None:
        self._driver = driver
        self._key = trial_id, wanted.group
        self._names = names
        self._first, self._last, conditions = narrowed(
            wanted.first_batches, wanted.last_batches or MOST_BATCHES, conditions
        )
        self._series = PackedSeries(driver, trial_id, wanted.group, names, conditions)
        self._use = levels if len(names) <= MOST_WITH_LEVELS and not conditions else NO_LEVELS

    async def steps(self, *, limit: int, at_once: int) -> list[int]:
        """Ascending. at_once  how many steps come in one answer of the database"""
        if self._first > self._last:
            return []
        levels = SeriesLevels(self._driver, *self._key, self._names, self._use.shape)
        if self._use.exist:
            await levels.read(self._first, self._last)
        count, begin, most = levels.count, levels.next, self._use.behind
        # So few are looked up in no time, and all of them are wanted.
        if count <= limit:
            begin = self._first
            most = self._use.most if count == 0 else None if most is None else most + count
            count = 0
        steps, columns = await self._package(begin, at_once)
        lacking = levels.lacking if self._use.exist else range(len(self._names))
        self._refuse(most, lacking, columns, of=len(steps), total=len(steps))
        total = len(steps)
        if total == at_once:
            total = await self._series.count(begin, self._last)
            self._refuse(most, lacking, columns, of=len(steps), total=total)
        chosen = ChosenSteps(total=total + count, limit=limit, width=len(self._names))
        if count:
            await levels.add_to(chosen)
        chosen.add(steps, columns)
        while len(steps) == at_once and steps[-1] < self._last:
            steps, columns = await self._package(steps[-1] + 1, at_once)
            chosen.add(steps, columns)
        return chosen.steps()

    def _refuse(
        self, most: int | None, lacking: Sequence[int], columns: Sequence[Numbers], *, of: int, total: int
    ) -> None:
        """Raise LevelsMissing if each of the metrics that lack levels has ``most`` points or more.

        of, total  how many points were read, in which one metric of several may have no number, and there are
        """
        if most is None or not lacking or total < most:
            return
        # What one of several has in all is estimated by what was read.
        known = (
            total if len(self._names) == 1 else (of - columns[place].count(None)) * total // of for place in lacking
        )
        if all(count >= most for count in known):
            raise LevelsMissing(self._key[1], [self._names[place] for place in lacking])

    async def _package(self, begin: int, at_once: int) -> tuple[list[int], list[Numbers]]:
        if begin > self._last:
            return [], []
        return await self._series.package(begin, self._last, at_once)


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


def _points_sql(numbers: str) -> str:
    return f"""
SELECT total_batches, end_time, {numbers} AS numbers, {epoch_of("document")} AS epoch
  FROM (SELECT total_batches, end_time, metrics -> $3::text AS document{OF_GROUP}
           AND total_batches = ANY($4::int[])) AS report
 ORDER BY total_batches"""  # noqa: S608 - of constants


_POINTS_OF_ONE: Final = _points_sql("(document -> $5::text)::text")
_POINTS: Final = _points_sql(
    """(SELECT jsonb_object_agg(name, document -> name)::text
          FROM unnest($5::text[]) AS name WHERE document ? name)"""
)
