"""Points of a window that stays as it is are chosen once, and anew as soon as one of its reports may have changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

import asyncpg
from msgspec import json

from libs.db.engine import Database, driver_connection
from services.api.queries.charts.levels.building import seal
from services.api.queries.charts.levels.making import LevelMaker
from services.api.queries.charts.points import WantedSeries, read_points
from services.api.queries.charts.time_series.conditions import BATCHES, RowCondition
from services.api.queries.charts.time_series.kept_points import KeptPoints
from services.api.queries.charts.time_series.trial_series import read_trial_series
from services.api.wire.charts.series import DataPoint
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.metrics.test_level_forgetting import store
from tests.integration.api.tasks.service import new_run

LIMIT: Final = 6
GROUP: Final = "training"


class Charts:
    """Of one trial, as one process of the api shows them."""

    def __init__(self, db: Database, trial: int) -> None:
        self._db = db
        self._trial = trial
        self._maker = LevelMaker()
        self._kept = KeptPoints()

    async def seal(self) -> None:
        async with self._db.read() as connection:
            assert await seal(await driver_connection(connection), self._trial, GROUP)

    async def is_known(
        self, *, last: int = 0, conditions: Sequence[RowCondition] = (), has_ended: bool = False, limit: int = LIMIT
    ) -> bool:
        """Ask for a chart, which has to be what is chosen report by report; returns whether it was without reports."""
        wanted = WantedSeries(group=GROUP, names=["loss"], last_batches=last)
        asked: list[asyncpg.LoggedQuery] = []
        async with self._db.read() as connection:
            driver = await driver_connection(connection)
            driver.add_query_logger(asked.append)
            ((_, points),) = await read_trial_series(
                lambda: nullcontext(driver),
                self._trial,
                [wanted],
                has_ended=has_ended,
                limit=limit,
                conditions=conditions,
                with_levels={GROUP},
                maker=self._maker,
                kept=self._kept,
            )
            driver.remove_query_logger(asked.append)
        shown = json.decode(json.encode(points), type=list[DataPoint])
        if not conditions:
            async with self._db.transaction() as connection:
                assert shown == await read_points(connection, self._trial, wanted, limit=limit)
        return not [each for each in asked if "total_batches = ANY" in each.query]


async def charts_of(db: Database) -> tuple[Charts, int]:
    """Of a trial with twelve reports, and its id."""
    trial = (await new_run(db)).trial
    await store(db, *(a_report(trial, step, avg={"loss": step * 7 % 50}) for step in range(0, 120, 10)))
    return Charts(db, trial), trial


async def test_points_of_sealed_reports_are_chosen_once(db: Database) -> None:
    charts, _ = await charts_of(db)
    for _ in range(2):
        assert not await charts.is_known(), "nobody says that they stay"
    await charts.seal()
    assert not await charts.is_known()
    assert await charts.is_known()
    assert not await charts.is_known(limit=LIMIT + 1), "others are chosen"


async def test_report_behind_a_window_leaves_it_as_it_is(db: Database) -> None:
    charts, trial = await charts_of(db)
    await charts.seal()
    for last in (0, 60):
        assert not await charts.is_known(last=last)
    await store(db, a_report(trial, 200, avg={"loss": 1000.0}))
    assert await charts.is_known(last=60)
    assert not await charts.is_known()
    assert not await charts.is_known(), "it is not sealed"
    await charts.seal()
    assert not await charts.is_known()
    assert await charts.is_known()


async def test_report_in_a_window_or_before_has_it_chosen_anew(db: Database) -> None:
    charts, trial = await charts_of(db)
    await charts.seal()
    for step in (45, 95):
        assert not await charts.is_known(last=60)
        assert await charts.is_known(last=60)
        await store(db, a_report(trial, step, avg={"loss": -1.0 * step}))
        assert not await charts.is_known(last=60)
        await charts.seal()


async def test_last_reports_of_a_trial_that_has_ended_are_sealed_by_who_asks(db: Database) -> None:
    charts, trial = await charts_of(db)
    await charts.seal()
    await store(db, a_report(trial, 200, avg={"loss": 1000.0}))
    assert not await charts.is_known()
    assert not await charts.is_known(has_ended=True)
    assert not await charts.is_known(has_ended=True)
    assert await charts.is_known(has_ended=True)


async def test_range_of_batches_is_a_window_and_another_filter_is_none(db: Database) -> None:
    charts, _ = await charts_of(db)
    await charts.seal()
    up_to_60 = RowCondition(BATCHES, "<=", "double precision", 60.0)
    assert not await charts.is_known(last=60)
    assert await charts.is_known(conditions=[up_to_60])
    one = RowCondition(BATCHES, "= ANY", "double precision[]", [60.0])
    for _ in range(2):
        assert not await charts.is_known(conditions=[one])
