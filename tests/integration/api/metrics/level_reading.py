"""Levels of series beside the reports that they are made of."""

from __future__ import annotations

from typing import Any, Final

from msgspec import json
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import driver_connection
from services.api.queries.charts.levels.building import add_chunks, seal
from services.api.queries.charts.levels.packing import Shape
from services.api.queries.charts.points import MOST_BATCHES, WantedSeries, read_points
from services.api.queries.charts.time_series.chosen_points import LevelUse, read_chosen_points
from services.api.queries.charts.time_series.kept_points import KeptPoints, SeriesWindow, read_standings
from services.api.wire.charts.series import DataPoint

SMALL: Final = Shape(block=2, blocks=2)
LIMIT: Final = 3
MIDDLE: Final = 58
"""Of the steps of most tests."""


async def extend_levels(driver: Any, trial_id: int, group: str, name: str, *, shape: Shape) -> bool:
    """Make the chunks that a series lacks; False when reports are being written or taken back."""
    sealed = await seal(driver, trial_id, group)
    return sealed is not None and await add_chunks(driver, trial_id, group, name, sealed, shape=shape)


async def pack(driver: Any, trial_id: int) -> None:
    """Make levels of all that a trial has reported, as far as that is possible now."""
    for group, name in await _series(driver, trial_id):
        await extend_levels(driver, trial_id, group, name, shape=SMALL)


async def check_levels(connection: AsyncConnection, trial_id: int, kept: KeptPoints) -> int:
    """Compare what is chosen by levels, what was before, and what is report by report, in a transaction; returns how
    many chunks there are."""
    driver = await driver_connection(connection)
    series = await _series(driver, trial_id)
    standings = await read_standings(driver, trial_id, {group for group, _ in series})
    # Each by itself, and those of a group over the same points.
    several = [
        (group, sorted(name for each, name in series if each == group)) for group in {each for each, _ in series}
    ]
    for group, names in [*((group, [name]) for group, name in series), *several]:
        wanted = WantedSeries(group=group, names=names)
        expected = await read_points(connection, trial_id, wanted, limit=LIMIT)
        use = LevelUse(exist=True, shape=SMALL)
        assert await read_chosen_points(driver, trial_id, wanted, limit=LIMIT, levels=use) == expected, (group, names)
        if (standing := standings.get(group)) is None:
            continue
        for last in (MIDDLE, MOST_BATCHES):
            wanted = WantedSeries(group=group, names=names, last_batches=last)
            expected = await read_points(connection, trial_id, wanted, limit=LIMIT)
            window = SeriesWindow(trial_id, group, tuple(names), 0, last, LIMIT)
            known = kept.find(window, standing)
            assert known is None or json.decode(known, type=list[DataPoint]) == expected, (group, names, last)
            kept.keep(window, standing, expected)
    chunks: int = await driver.fetchval("SELECT count(*) FROM metric_chunks WHERE trial_id = $1", trial_id)
    return chunks


async def _series(driver: Any, trial_id: int) -> list[tuple[str, str]]:
    rows = await driver.fetch(
        """
        SELECT DISTINCT metric_group, jsonb_object_keys(
               coalesce(metrics -> 'avg_metrics', metrics -> 'validation_metrics')) AS name
          FROM metrics
         WHERE trial_id = $1 AND kind <> 'PROFILING'
         ORDER BY 1, 2
        """,
        trial_id,
    )
    return [(group, name) for group, name in rows]
