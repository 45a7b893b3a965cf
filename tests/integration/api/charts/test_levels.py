"""Points that are chosen by the levels of a series are those that are chosen report by report."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from libs.db.engine import Database, driver_connection
from libs.db.tables.metrics import metric_chunks
from services.api.queries.charts.levels.packing import Shape
from services.api.queries.charts.points import WantedSeries, read_points
from services.api.queries.charts.time_series.chosen_points import LevelsMissing, LevelUse, read_chosen_points
from services.api.wire.charts.series import DataPoint
from tests.integration.api.charts.test_chosen_points import insert_reports, report
from tests.integration.api.metrics.level_reading import extend_levels
from tests.integration.api.tasks.service import Run, new_run, rows_of

SHAPE: Final = Shape(block=4, blocks=3)


def loss(*, first: int = 0, last: int = 0) -> WantedSeries:
    return WantedSeries(group="training", names=["loss"], first_batches=first, last_batches=last)


async def build(db: Database, trial: int, name: str = "loss") -> bool:
    async with db.read() as connection:
        return await extend_levels(await driver_connection(connection), trial, "training", name, shape=SHAPE)


async def both(
    db: Database, trial: int, wanted: WantedSeries, limit: int, *, package_numbers: int = 1000, **use: Any
) -> list[list[DataPoint]]:
    """What is chosen report by report, and by the levels that there are."""
    async with db.transaction() as connection:
        expected = await read_points(connection, trial, wanted, limit=limit)
        found = await read_chosen_points(
            await driver_connection(connection),
            trial,
            wanted,
            limit=limit,
            package_numbers=package_numbers,
            levels=LevelUse(exist=True, shape=SHAPE, **use),
        )
    return [expected, found]


@pytest.mark.parametrize(("count", "odd"), [(11, 0.3), (60, 0.4), (400, 0.0), (400, 0.4), (400, 1.0)])
async def test_the_same_points(db: Database, count: int, odd: float) -> None:
    chance = random.Random(f"{count} {odd}")
    trial = (await new_run(db)).trial
    await insert_reports(db, trial, [report(chance, odd=odd) for _ in range(count)], archived=0.1)
    for _ in range(2):  # the second time from levels
        windows = [(0, 0), *(sorted(chance.sample(range(3 * count + 20), 2)) for _ in range(25))]
        for first, last in windows:
            for limit in (1, 2, 3, 5, 12, 50, 1000):
                for at_once in (7, 1000):
                    wanted = loss(first=first, last=last)
                    expected, found = await both(db, trial, wanted, limit, package_numbers=at_once)
                    assert found == expected, (first, last, limit, at_once)
        assert await build(db, trial)
    async with db.read() as connection:
        having = (
            "SELECT count(*) FROM metrics WHERE trial_id = $1 AND NOT archived AND metrics -> 'avg_metrics' ? 'loss'"
        )
        points = await (await driver_connection(connection)).fetchval(having, trial)
    assert len(await rows_of(db, metric_chunks, trial_id=trial)) == points // SHAPE.chunk


async def test_few_blocks_are_read_of_many(db: Database, run: Run) -> None:
    """Of each stretch those where it begins, and no report but the points."""
    await insert_reports(db, run.trial, [{"loss": n % 173} for n in range(2400)], archived=0)
    assert await build(db, run.trial)
    asked: list[Any] = []
    async with db.read() as connection:
        driver = await driver_connection(connection)
        driver.add_query_logger(asked.append)
        async with driver.transaction(isolation="repeatable_read", readonly=True):
            points = await read_chosen_points(
                driver, run.trial, loss(), limit=12, levels=LevelUse(exist=True, shape=SHAPE)
            )
        driver.remove_query_logger(asked.append)
    blocks = [each for each in asked if "substring" in each.query]
    assert [len(each.args[3]) for each in blocks] == [2]
    reports = [each for each in asked if "FROM metrics\n" in each.query]
    assert [each.args[3] for each in reports[1:]] == [[point.batches for point in points]]
    assert reports[0].args[4:6] == (7198, 2**31 - 1)


async def test_levels_are_asked_for_where_reports_are_many(db: Database, run: Run) -> None:
    await insert_reports(db, run.trial, [{"loss": n} for n in range(30)], archived=0)
    expected, found = await both(db, run.trial, loss(), 5, most=31)
    assert found == expected
    with pytest.raises(LevelsMissing):
        await both(db, run.trial, loss(), 5, most=30, behind=1)
    assert await build(db, run.trial)
    expected, found = await both(db, run.trial, loss(), 5, most=30, behind=7)
    assert found == expected
    with pytest.raises(LevelsMissing):
        await both(db, run.trial, loss(), 5, behind=6)
