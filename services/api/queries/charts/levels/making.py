"""Which requests make levels: of those that need the same at once only one, and none again and again.

A series whose reports come late loses levels each time. If each request made them anew, its charts would cost more than
without levels; so a multiple of the time that making them took passes before they are made again, and meanwhile what is
in no level is read. All of it is of one process: it bounds work, and nothing that is answered depends on it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from services.api.queries.charts.levels import statements as sql
from services.api.queries.charts.levels.building import add_chunks, seal
from services.api.queries.charts.levels.packing import STORED, Shape

PAUSE_FACTOR: Final = 10
"""Levels that are forgotten all the time are being made for an eleventh of it at most."""
MOST_REMEMBERED: Final = 10_000
"""Series of which it is known when levels were made."""

Series = tuple[int, str, str]
"""Trial, group and name."""


class _Made(Struct, frozen=True):
    """Of which generation levels were made last, and up to when none of another one are, by the clock."""

    generation: int
    resume_s: float


class LevelMaker:
    """Makes the levels that requests of one process ask for. Safe for concurrent use by any number of tasks."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """clock  seconds that never go back"""
        self._clock = clock
        self._under_way: dict[Series, asyncio.Future[bool]] = {}
        self._made: dict[Series, _Made] = {}

    def under_way(self, series: Series) -> asyncio.Future[bool] | None:
        """What somebody who is making levels of a series will return to those who wait, who need no connection for it;
        None if nobody is. To be shielded."""
        return self._under_way.get(series)

    async def make(self, driver: Any, series: Series, *, shape: Shape = STORED) -> bool:
        """Make the chunks that a series lacks, unless it is too early for that; wait for whoever is making them.

        driver  an asyncpg connection outside of a transaction
        Returns False if the one who was making them was cut off, so that somebody else has to.
        """
        if (other := self._under_way.get(series)) is not None:
            return await asyncio.shield(other)
        under_way = self._under_way[series] = asyncio.get_running_loop().create_future()
        was_cut_off = True
        try:
            await self._make(driver, series, shape)
            was_cut_off = False
        except Exception:  # an answer too: others would fail alike
            was_cut_off = False
            raise
        finally:
            del self._under_way[series]
            under_way.set_result(not was_cut_off)
        return True

    async def _make(self, driver: Any, series: Series, shape: Shape) -> None:
        trial_id, group, name = series
        made = self._made.get(series)
        if (
            made is not None
            and self._clock() < made.resume_s
            and await driver.fetchval(sql.GENERATION, trial_id, group) != made.generation
        ):
            return
        sealed = await seal(driver, trial_id, group)
        if sealed is None:
            return
        began_s = self._clock()
        try:
            await add_chunks(driver, trial_id, group, name, sealed, shape=shape)
        finally:
            ended_s = self._clock()
            resume_s = ended_s + PAUSE_FACTOR * (ended_s - began_s)
            # A few chunks that were added since do not make those before them cheaper.
            self._remember(series, _Made(sealed.generation, resume_s if made is None else max(made.resume_s, resume_s)))

    def _remember(self, series: Series, made: _Made) -> None:
        self._made.pop(series, None)
        if len(self._made) >= MOST_REMEMBERED:
            del self._made[next(iter(self._made))]
        self._made[series] = made
