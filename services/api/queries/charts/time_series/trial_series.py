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
from services.api.queries.charts.points import WantedSeries
from services.api.queries.charts.time_series.chosen_points import (
    MANY_REPORTS,
    LevelsMissing,
    LevelUse,
    read_chosen_points,
)
from services.api.queries.charts.time_series.conditions import RowCondition
from services.api.wire.charts.series import DataPoint

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
    limit: int,
    conditions: Sequence[RowCondition],
    with_levels: Collection[str],
    maker: LevelMaker,
) -> list[tuple[str, list[DataPoint]]]:
    """Group and points of each series, all from one snapshot.

    connect      an asyncpg connection outside of a transaction, until the end of a block
    series       each of another group
    with_levels  groups of which some series may have levels
    maker        makes those that are missing
    """
    uses = {
        wanted.group: LevelUse(exist=wanted.group in with_levels, most=MANY_REPORTS, behind=STORED.chunk)
        for wanted in series
    }

    async def read(driver: Any) -> list[tuple[str, list[DataPoint]]]:
        # Points are chosen by one statement and read by another: both have to see the same reports.
        async with driver.transaction(isolation="repeatable_read", readonly=True):
            return [
                (
                    wanted.group,
                    await read_chosen_points(
                        driver, trial_id, wanted, limit=limit, conditions=conditions, levels=uses[wanted.group]
                    ),
                )
                for wanted in series
            ]

    while True:
        async with connect() as driver:
            try:
                return await read(driver)
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


async def _make(maker: LevelMaker, driver: Any, series: Series) -> None:
    try:
        await maker.make(driver, series)
    except (OSError, *DRIVER_ERRORS) as error:
        if driver.is_closed():
            raise
        # A full disk, or a server that takes no writes: what is read needs none.
        trial_id, group, _ = series
        log.warning("charts.levels_not_made", trial_id=trial_id, group=group, error=str(error))
