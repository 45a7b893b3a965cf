"""How often levels are made, whoever asks for them, and however often they are forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import asyncpg
import pytest
from sqlalchemy import select

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database, driver_connection
from services.api.queries.charts.levels import making
from services.api.queries.charts.levels.making import PAUSE_FACTOR, LevelMaker
from services.api.queries.charts.points import WantedSeries
from services.api.queries.charts.series import driver_of
from services.api.queries.charts.time_series.chosen_points import MANY_REPORTS
from services.api.queries.charts.time_series.kept_points import KeptPoints
from services.api.queries.charts.time_series.trial_series import read_trial_series
from tests.harness.waiting import eventually
from tests.integration.api.charts.test_long_series import insert
from tests.integration.api.metrics.level_reading import SMALL
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.metrics.test_level_forgetting import WAITING, chunks_of, session, store
from tests.integration.api.tasks.service import Run, new_run


class SlowClock:
    """Each look at it takes a second, so that making levels takes one."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


async def make(db: Database, maker: LevelMaker, trial: int) -> None:
    async with db.read() as connection:
        assert await maker.make(await driver_connection(connection), (trial, "training", "loss"), shape=SMALL)


async def read_custom(connect: Callable[[], Any], maker: LevelMaker, trial: int) -> Any:
    wanted = [WantedSeries(group="custom", names=["loss"])]
    return await read_trial_series(
        connect,
        trial,
        wanted,
        has_ended=False,
        limit=100,
        conditions=(),
        with_levels=(),
        maker=maker,
        kept=KeptPoints(),
    )


async def test_requests_at_once_have_levels_made_by_one_of_them(db: Database, database_url: str, run: Run) -> None:
    await insert(db, run.trial, 1, MANY_REPORTS)
    maker = LevelMaker()
    stored: list[str] = []

    def note(asked: asyncpg.LoggedQuery) -> None:
        if "INSERT INTO metric_chunks" in asked.query:
            stored.append(asked.query)

    async def read(driver: Any) -> Any:
        driver.add_query_logger(note)
        return await read_custom(lambda: nullcontext(driver), maker, run.trial)

    async with session(database_url) as one, session(database_url) as other, session(database_url) as third:
        first, *others = await asyncio.gather(*(read(driver) for driver in (one, other, third)))
    assert others == [first, first]
    assert len(stored) == 1


async def test_who_waits_for_levels_keeps_no_connection_from_others(db: Database, database_url: str, run: Run) -> None:
    await insert(db, run.trial, 1, MANY_REPORTS)
    maker = LevelMaker()
    async with (
        connect_database(DatabaseSettings(url=database_url, pool_size=2)) as small,
        session(database_url) as holder,
    ):

        def read() -> asyncio.Task[Any]:
            return asyncio.create_task(read_custom(lambda: driver_of(small), maker, run.trial))

        async with holder.transaction():
            await holder.execute("LOCK TABLE metric_chunks IN ROW EXCLUSIVE MODE")
            await holder.execute("LOCK TABLE metric_levels IN EXCLUSIVE MODE")
            reading = [read()]
            await eventually(lambda: maker.under_way((run.trial, "custom", "loss")) is not None)
            reading.append(read())
            await asyncio.sleep(0)  # it has asked for the last connection before
            async with small.read() as connection:
                assert await connection.scalar(select(1)) == 1
            assert not any(task.done() for task in reading)
        first, other = await asyncio.gather(*reading)
    assert other == first


async def test_somebody_else_makes_levels_when_a_request_is_cut_off(db: Database, database_url: str) -> None:
    trial = (await new_run(db)).trial
    await store(db, *(a_report(trial, step) for step in range(12)))
    maker, series = LevelMaker(), (trial, "training", "loss")
    async with session(database_url) as one, session(database_url) as other, session(database_url) as holder:
        async with holder.transaction():
            await holder.execute("LOCK TABLE metric_chunks IN ACCESS EXCLUSIVE MODE")
            builder = asyncio.create_task(maker.make(one, series, shape=SMALL))
            await eventually(lambda: holder.fetchval(WAITING, one.get_server_pid()))
            waiting = asyncio.create_task(maker.make(other, series, shape=SMALL))
            left = asyncio.create_task(maker.make(other, series, shape=SMALL))
            await asyncio.sleep(0)
            left.cancel()
            await asyncio.wait([left])
            assert not waiting.done()
            builder.cancel()
            assert await waiting is False
        assert await chunks_of(db, trial) == 0
        assert await maker.make(other, series, shape=SMALL)
    assert await chunks_of(db, trial) == 3


async def test_levels_that_are_forgotten_again_and_again_are_not_made_each_time(db: Database) -> None:
    trial = (await new_run(db)).trial
    await store(db, *(a_report(trial, step) for step in range(0, 120, 10)))
    clock = SlowClock()
    maker = LevelMaker(clock=clock)
    await make(db, maker, trial)
    assert await chunks_of(db, trial) == 3
    await store(db, *(a_report(trial, step) for step in range(120, 160, 10)))
    await make(db, maker, trial)
    assert await chunks_of(db, trial) == 4, "nothing was forgotten: the new ones are made at once"
    for late in (5, 6):
        made_at_s = clock.now_s
        await store(db, a_report(trial, late))
        await make(db, maker, trial)
        assert await chunks_of(db, trial) == 0
        clock.now_s = made_at_s + PAUSE_FACTOR + 1
        await make(db, maker, trial)
        assert await chunks_of(db, trial) == 4


async def test_of_so_many_series_it_is_remembered_when_levels_were_made(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "MOST_REMEMBERED", 1)
    maker = LevelMaker(clock=SlowClock())
    runs = [(await new_run(db)).trial for _ in range(2)]
    for trial in runs:
        await store(db, *(a_report(trial, step) for step in range(0, 120, 10)))
        await make(db, maker, trial)
        await store(db, a_report(trial, 5))
    for trial, chunks in zip(reversed(runs), (0, 3), strict=True):
        await make(db, maker, trial)
        assert await chunks_of(db, trial) == chunks
