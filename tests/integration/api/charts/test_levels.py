"""Points that are chosen by the levels of a series are those that are chosen report by report."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

import pytest
from sqlalchemy import text

from libs.db.engine import Database, driver_connection
from libs.db.tables.metrics import metric_chunks
from services.api.queries.charts.levels.packing import Shape
from services.api.queries.charts.points import WantedSeries, read_points
from services.api.queries.charts.time_series.chosen_points import LevelsMissing, LevelUse, read_chosen_points
from services.api.queries.charts.time_series.conditions import BATCHES, RowCondition
from services.api.wire.charts.series import DataPoint
from tests.integration.api.charts.test_chosen_points import NAMES, insert_reports, report
from tests.integration.api.metrics.level_reading import extend_levels
from tests.integration.api.tasks.service import Run, new_run, rows_of

SHAPE: Final = Shape(block=4, blocks=3)


def loss(*, first: int = 0, last: int = 0, names: Sequence[str] = ("loss",)) -> WantedSeries:
    return WantedSeries(group="training", names=names, first_batches=first, last_batches=last)


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


@pytest.mark.parametrize(("factor", "modulus", "read"), [(37, 173, 0), (1, 10_000, 3)])
async def test_few_blocks_are_read_of_many(db: Database, run: Run, factor: int, modulus: int, read: int) -> None:
    """Of a slope those where stretches meet; where numbers go up and down none, and no report but the points."""
    await insert_reports(db, run.trial, [{"loss": n * factor % modulus} for n in range(2424)], archived=0)
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
    # The bounds of five stretches are in four chunks.
    (extremes,) = [each for each in asked if "string_agg(extremes" in each.query]
    assert extremes.args[3] == [40, 80, 121, 161]
    assert [len(each.args[3]) for each in asked if "substring" in each.query] == ([read] if read else [])
    reports = [each for each in asked if "FROM metrics\n" in each.query]
    assert [each.args[3] for each in reports[1:]] == [[point.batches for point in points]]
    assert reports[0].args[4:6] == (3 * 2423 + 1, 2**31 - 1)


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


def first_read(asked: Sequence[Any]) -> int:
    """The first step from which on reports are read."""
    steps: list[int] = [each.args[-4] for each in asked if "AS package" in each.query]
    return min(steps)


async def choose(
    db: Database, trial: int, wanted: WantedSeries, limit: int, conditions: Sequence[RowCondition] = (), **use: Any
) -> tuple[list[DataPoint], list[Any]]:
    """What is chosen by the levels that there are, and what the database was asked for it."""
    asked: list[Any] = []
    async with db.transaction() as connection:
        driver = await driver_connection(connection)
        driver.add_query_logger(asked.append)
        found = await read_chosen_points(
            driver, trial, wanted, limit=limit, conditions=conditions, levels=LevelUse(exist=True, shape=SHAPE, **use)
        )
        driver.remove_query_logger(asked.append)
    return found, asked


@pytest.mark.parametrize("odd", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("apart", [0, 130, 500])
async def test_several_metrics_over_the_same_points(db: Database, odd: float, apart: int) -> None:
    """Levels serve as far as the metrics were reported together: ``apart`` of the last reports have some of them."""
    chance = random.Random(f"{apart} {odd}")
    trial = (await new_run(db)).trial
    together = [{**dict.fromkeys(NAMES, 1.5), **report(chance, odd=odd)} for _ in range(500 - apart)]
    await insert_reports(db, trial, [*together, *(report(chance, odd=odd) for _ in range(apart))], archived=0.1)
    for name in NAMES:
        assert await build(db, trial, name)
    for first, last in [(0, 0), *(sorted(chance.sample(range(1520), 2)) for _ in range(10))]:
        for limit in (1, 2, 7, 15, 40, 1000):
            for names in (NAMES, NAMES[1:]):
                expected, found = await both(db, trial, loss(first=first, last=last, names=names), limit, behind=20_000)
                assert found == expected, (first, last, limit)
    _, asked = await choose(db, trial, loss(names=NAMES), 40)
    assert (first_read(asked) > 800) is (apart < 200)


async def test_metrics_that_were_reported_by_turns(db: Database, run: Run) -> None:
    """Their first and last steps are almost the same, and their levels do not serve for both of them."""
    documents = [{"loss": n, **({"acc": -n} if n % 12 in {0, 11} or n % 2 else {"other": n})} for n in range(240)]
    await insert_reports(db, run.trial, documents, archived=0)
    for name in ("loss", "acc"):
        assert await build(db, run.trial, name)
    expected, found = await both(db, run.trial, loss(names=["loss", "acc"]), 9, most=1, behind=1)
    assert found == expected


async def test_a_metric_that_was_reported_a_few_times_asks_for_no_levels(db: Database, run: Run) -> None:
    documents = [{"loss": n, **({"rare": n} if n < 5 else {})} for n in range(240)]
    await insert_reports(db, run.trial, documents, archived=0)
    wanted = loss(names=["loss", "rare"])
    expected, found = await both(db, run.trial, wanted, 9, most=6, behind=6)
    assert found == expected
    with pytest.raises(LevelsMissing) as missing:
        await both(db, run.trial, wanted, 9, most=5, behind=5)
    assert missing.value.names == ["loss", "rare"]


async def test_range_of_batches_is_a_window(db: Database, run: Run) -> None:
    chance = random.Random("range")
    await insert_reports(db, run.trial, [{"loss": chance.random()} for _ in range(400)], archived=0)
    assert await build(db, run.trial)
    expected, _ = await both(db, run.trial, loss(first=121, last=890), 20)
    conditions = [
        RowCondition(BATCHES, ">", "double precision", 120.0),
        RowCondition(BATCHES, "<", "double precision", 890.5),
    ]
    found, asked = await choose(db, run.trial, loss(), 20, conditions, most=1)
    assert found == expected
    assert not [each for each in asked if "AS package" in each.query]


async def test_chunks_of_the_release_before_are_filled(db: Database, run: Run) -> None:
    await insert_reports(db, run.trial, [{"loss": n * 37 % 173} for n in range(240)], archived=0)
    assert await build(db, run.trial)
    expected, _ = await both(db, run.trial, loss(), 20)
    made = await rows_of(db, metric_chunks, trial_id=run.trial)
    async with db.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE metric_chunks SET outline = NULL, positions = NULL, steps_hash = NULL"
                " WHERE trial_id = :trial AND chunk_no IN (3, 4, 9)"
            ),
            {"trial": run.trial},
        )
    found, asked = await choose(db, run.trial, loss(), 20)
    assert found == expected
    assert first_read(asked) == 3 * 36 - 2
    with pytest.raises(LevelsMissing):
        await choose(db, run.trial, loss(), 20, most=100, behind=100)
    assert await build(db, run.trial)
    filled = await rows_of(db, metric_chunks, trial_id=run.trial)
    assert sorted(filled, key=lambda row: row.chunk_no) == sorted(made, key=lambda row: row.chunk_no)


async def test_levels_that_end_early_are_asked_for_however_little_is_read_at_once(db: Database, run: Run) -> None:
    documents = [{"loss": n, "acc": -n, **({"rare": n} if n < 30 else {})} for n in range(240)]
    await insert_reports(db, run.trial, documents[:12], archived=0)
    for name in ("loss", "acc"):
        assert await build(db, run.trial, name)
    async with db.transaction() as connection:
        await connection.execute(text("DELETE FROM metrics WHERE trial_id = :trial"), {"trial": run.trial})
    await insert_reports(db, run.trial, documents, archived=0)
    wanted = loss(names=["loss", "acc"])
    for limit in (5, 100):
        with pytest.raises(LevelsMissing):
            await both(db, run.trial, wanted, limit, package_numbers=40, behind=200)
        expected, found = await both(db, run.trial, wanted, limit, package_numbers=40, behind=241)
        assert found == expected
