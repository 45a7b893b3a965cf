"""The series of one trial, from levels where a series is long; these are made when it is asked for the first time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog

from libs.db.failures import DRIVER_ERRORS
from services.api.queries.charts.levels import statements as sql
from services.api.queries.charts.levels.making import LevelMaker, Series
from services.api.queries.charts.levels.packing import STORED
from services.api.queries.charts.points import MOST_BATCHES, WantedSeries
from services.api.queries.charts.time_series.chosen_points import (
    MANY_REPORTS,
    LevelsMissing,
    LevelUse,
    read_chosen_points,
)
from services.api.queries.charts.time_series.conditions import RowCondition, narrowed
from services.api.queries.charts.time_series.kept_points import (
    GroupStanding,
    KeptPoints,
    Points,
    SeriesWindow,
    read_standings,
)

log = structlog.get_logger()


async def groups_with_levels(driver: Any, trial_ids: Sequence[int]) -> dict[int, set[str]]:
    """The groups by trial of which some series may have levels; levels of other groups may have been made meanwhile."""
    found: dict[int, set[str]] = {}
    for trial_id, group in await driver.fetch(sql.WITH_LEVELS, trial_ids):
        found.setdefault(trial_id, set()).add(group)
    return found


async def read_trial_series(
    connect: Callable[[], AbstractAsyncContextManager[Any]],
    trial_id: int,
    series: Sequence[WantedSeries],
    *,
    has_ended: bool,
    limit: int,
    conditions: Sequence[RowCondition],
    with_levels: Collection[str],
    maker: LevelMaker,
    kept: KeptPoints,
) -> list[tuple[str, Points]]:
    """Group and points of each series, all from one snapshot.

    connect      an asyncpg connection outside of a transaction, until the end of a block
    series       each of another group
    has_ended    the trial: its last reports are sealed then, so that what is chosen can be kept
    with_levels  groups of which some series may have levels
    maker        makes those that are missing
    kept         has what was chosen before
    """
    uses = {
        wanted.group: LevelUse(exist=wanted.group in with_levels, most=MANY_REPORTS, behind=STORED.chunk)
        for wanted in series
    }

    unsealed: list[Series] = []

    async def read(driver: Any) -> list[tuple[str, Points]]:
        unsealed.clear()
        # Points are chosen by one statement and read by another: both have to see the same reports.
        async with driver.transaction(isolation="repeatable_read", readonly=True):
            standings = await read_standings(driver, trial_id, [group for group, use in uses.items() if use.exist])
            return [(wanted.group, await points_of(driver, wanted, standings.get(wanted.group))) for wanted in series]

    async def points_of(driver: Any, wanted: WantedSeries, standing: GroupStanding | None) -> Points:
        use = uses[wanted.group]
        window = _window(trial_id, wanted, conditions, limit)
        if standing is None or window is None:
            return await read_chosen_points(driver, trial_id, wanted, limit=limit, conditions=conditions, levels=use)
        if (known := kept.find(window, standing)) is not None:
            return known
        points = await read_chosen_points(driver, trial_id, wanted, limit=limit, conditions=conditions, levels=use)
        if has_ended and not standing.is_sealed(window):
            unsealed.append((trial_id, wanted.group, window.names[0]))
        return kept.keep(window, standing, points)

    while True:
        async with connect() as driver:
            try:
                found = await read(driver)
                for each in unsealed:
                    await _make(maker, driver, each)
                return found
            except LevelsMissing as missing:
                group = missing.group
                others = []
                for name in missing.names:
                    under_way = maker.under_way((trial_id, group, name))
                    if under_way is None:
                        await _make(maker, driver, (trial_id, group, name))
                    else:
                        others.append(under_way)
        # There may be more who wait than connections, and others need these.
        if all([await asyncio.shield(under_way) for under_way in others]):
            # Whatever came of it: what is in no level is read, so nobody waits for those who write reports.
            uses[group] = LevelUse(exist=True)


def _window(trial_id: int, wanted: WantedSeries, conditions: Sequence[RowCondition], limit: int) -> SeriesWindow | None:
    """None if the points are not all of a range of steps."""
    first, last, others = narrowed(wanted.first_batches, wanted.last_batches or MOST_BATCHES, conditions)
    if others:
        return None
    return SeriesWindow(trial_id, wanted.group, tuple(dict.fromkeys(wanted.names)), first, last, limit)


async def _make(maker: LevelMaker, driver: Any, series: Series) -> None:
    try:
        await maker.make(driver, series)
    except (OSError, *DRIVER_ERRORS) as error:
        if driver.is_closed():
            raise
        # A full disk, or a server that takes no writes: what is read needs none.
        trial_id, group, _ = series
        log.warning("charts.levels_not_made", trial_id=trial_id, group=group, error=str(error))
