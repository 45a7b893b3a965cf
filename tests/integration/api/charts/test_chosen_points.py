"""Points that are chosen from packed numbers are those that are chosen report by report."""

from __future__ import annotations

import json
import random
from typing import Any, Final

import asyncpg
import pytest
from sqlalchemy import text

from libs.db.engine import Database, driver_connection
from services.api.queries.charts.points import WantedSeries, read_points
from services.api.queries.charts.time_series.chosen_points import read_chosen_points
from services.api.wire.charts.series import DataPoint
from tests.integration.api.tasks.service import Run, new_run

ODD: Final = ("NaN", "Infinity", "-Infinity", None, True, "1", [1], {"a": 1.0}, 10**400, 2**53, 2**53 + 1, 1e308, -0.0)
NAMES: Final = ("loss", "acc", "a b.c")


def report(random_: random.Random, *, odd: float) -> dict[str, Any]:
    """Numbers with many ties, some missing, some odd."""
    found: dict[str, Any] = {}
    for name in NAMES:
        if random_.random() < 0.8:
            found[name] = random_.choice(ODD) if random_.random() < odd else random_.choice((0, 1, 2.5, -3, 1e-7))
    return found


async def insert_reports(db: Database, trial: int, documents: list[dict[str, Any]], *, archived: float) -> None:
    random_ = random.Random(len(documents))
    statement = text(
        "INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics, archived)"
        " VALUES (:trial, 1, 'training', 'TRAINING', :step, now(), CAST(:document AS jsonb), :archived)"
    )
    rows = [
        {
            "trial": trial,
            "step": 3 * n,
            "document": json.dumps({"avg_metrics": document}),
            "archived": random_.random() < archived,
        }
        for n, document in enumerate(documents)
    ]
    async with db.transaction() as connection:
        await connection.execute(statement, rows)


async def both(db: Database, trial: int, wanted: WantedSeries, limit: int, at_once: int) -> list[list[DataPoint]]:
    async with db.transaction() as connection:
        expected = await read_points(connection, trial, wanted, limit=limit)
        driver = await driver_connection(connection)
        found = await read_chosen_points(
            driver, trial, wanted, limit=limit, package_numbers=at_once * len(wanted.names)
        )
    return [expected, found]


@pytest.mark.parametrize(("count", "odd"), [(1, 0.5), (40, 0.3), (300, 0.0), (300, 0.4), (300, 1.0)])
async def test_the_same_points(db: Database, count: int, odd: float) -> None:
    random_ = random.Random(f"{count} {odd}")
    trial = (await new_run(db)).trial
    await insert_reports(db, trial, [report(random_, odd=odd) for _ in range(count)], archived=0.1)
    for names in (["loss"], ["acc", "loss"], ["none"], [*NAMES, "none", "loss"]):
        for first, last in ((0, 0), (30, 400)):
            wanted = WantedSeries(group="training", names=names, first_batches=first, last_batches=last)
            for limit in (1, 2, 3, 5, 12, 50, 1000):
                for at_once in (7, 1000):
                    expected, found = await both(db, trial, wanted, limit, at_once)
                    assert found == expected, (names, first, limit, at_once)


async def test_more_names_than_a_statement_has_columns(db: Database, run: Run) -> None:
    documents = [{f"m{each}": (each * n) % 7 for each in range(250)} for n in range(20)]
    await insert_reports(db, run.trial, documents, archived=0)
    wanted = WantedSeries(group="training", names=[f"m{each}" for each in range(250)])
    for limit in (7, 19, 100):
        expected, found = await both(db, run.trial, wanted, limit, 1000)
        assert found == expected


async def test_no_report_is_read_that_is_not_shown(db: Database, run: Run) -> None:
    """Of a long series, one row has all numbers, and the rest are the points."""
    await insert_reports(db, run.trial, [{"loss": n % 17, "text": "x" * 100} for n in range(2000)], archived=0)
    asked: list[asyncpg.LoggedQuery] = []
    wanted = WantedSeries(group="training", names=["loss"])
    async with db.read() as connection:
        driver = await driver_connection(connection)
        driver.add_query_logger(asked.append)
        async with driver.transaction(isolation="repeatable_read", readonly=True):
            points = await read_chosen_points(driver, run.trial, wanted, limit=50)
        driver.remove_query_logger(asked.append)
    reads = [each for each in asked if "metrics" in each.query]
    assert len(reads) == 2
    assert len(points) <= 50
    assert reads[1].args[3] == [point.batches for point in points]
