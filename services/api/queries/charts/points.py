"""The points of one trial's series, read row by row and thinned out on the way (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET, Struct
from sqlalchemy import ARRAY, BigInteger, Text, bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.searchers.reports import read_number
from services.api.queries.charts.downsampling import Downsampling
from services.api.queries.charts.groups import key_of
from services.api.queries.charts.seen_rows import SeenRows
from services.api.queries.charts.streaming import ROWS_AT_ONCE
from services.api.wire.base import double, struct_value, timestamp
from services.api.wire.charts.series import DataPoint

MOST_BATCHES: Final = 2**31 - 1


def epoch_of(document: str) -> str:
    """SQL for the epoch that a report gives, or NULL; ``document`` is SQL for what it says."""
    return f"""CASE
    WHEN jsonb_typeof({document} -> 'epoch') = 'number' THEN ({document} ->> 'epoch')::double precision
    WHEN jsonb_typeof({document} -> 'epochs') = 'number' THEN ({document} ->> 'epochs')::double precision
END"""


_FROM: Final = """
  FROM metrics
 WHERE trial_id = :trial_id AND metric_group = :group AND NOT archived AND kind <> 'PROFILING'
   AND id > :floor_id AND id <> ALL(:seen)
   AND total_batches BETWEEN :first AND :last AND (metrics -> :key) ?| :names"""
_VALUES: Final = f"""
SELECT id, total_batches, end_time, {epoch_of("metrics -> :key")} AS epoch,
       (SELECT jsonb_object_agg(entry.key, entry.value)
          FROM jsonb_each(metrics -> :key) AS entry WHERE entry.key = ANY(:names)) AS numbers"""  # noqa: S608 - all of it is above


class WantedSeries(Struct, frozen=True, kw_only=True):
    """Metrics of one group, within a range of batches; ``last_batches`` 0 has no end, both ends belong to it."""

    group: str
    names: Sequence[str]
    first_batches: int = 0
    last_batches: int = 0


async def read_points(
    connection: AsyncConnection, trial_id: int, wanted: WantedSeries, *, limit: int, seen: SeenRows | None = None
) -> list[DataPoint]:
    """At most ``limit`` of the reports that have one of the metrics, in the order of batches.

    seen  rows to leave out; those among which points were chosen are added to it
    The connection has to be in a transaction, since rows are read through a cursor.
    """
    names = list(dict.fromkeys(wanted.names))
    parameters: dict[str, Any] = {
        "trial_id": trial_id,
        "group": wanted.group,
        "key": key_of(wanted.group),
        "names": names,
        "first": wanted.first_batches,
        "last": wanted.last_batches or MOST_BATCHES,
        "seen": [] if seen is None else seen.recent,
        "floor_id": 0 if seen is None else seen.floor_id,
    }
    kinds: list[Any] = [
        bindparam("names", type_=ARRAY(Text)),
        bindparam("key", type_=Text),
        bindparam("seen", type_=ARRAY(BigInteger)),
    ]
    total = await connection.scalar(text(f"SELECT count(*) {_FROM}").bindparams(*kinds), parameters) or 0
    chosen = Downsampling[Any](total=total, limit=limit, width=len(names) or 1)
    if total:
        statement = text(f"{_VALUES} {_FROM}\n ORDER BY total_batches, id").bindparams(*kinds)
        async for rows in (await connection.stream(statement, parameters)).partitions(ROWS_AT_ONCE):
            for row in rows:
                chosen.add(row, [read_number(row.numbers.get(name)) for name in names])
                if seen is not None:
                    seen.add(row.id, row.end_time)
    return [_point(row.total_batches, row.end_time, row.numbers, row.epoch) for row in chosen.points()]


def _point(batches: int, end_time: datetime, numbers: dict[str, Any], epoch: float | None) -> DataPoint:
    return DataPoint(
        batches=batches,
        values=struct_value(numbers),
        time=timestamp(end_time),
        epoch=UNSET if epoch is None else double(epoch),
    )
