"""Long series as pages ask for them: levels are made when one is asked for, and follow its reports."""

from __future__ import annotations

from typing import Any, Final

import asyncpg
import httpx
from sqlalchemy import text

from libs.db.engine import Database, driver_connection
from libs.db.tables.metrics import metric_chunks
from services.api.queries.charts.levels.building import add_chunks, seal
from services.api.queries.charts.levels.packing import STORED, Shape
from services.api.queries.charts.points import WantedSeries, read_points
from services.api.queries.charts.time_series.chosen_points import MANY_REPORTS
from services.api.queries.charts.time_series.packages import PackedSeries
from tests.integration.api.tasks.service import Run, rows_of

SERIES: Final = "/api/v1/trials/time-series"
INSERT: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
SELECT :trial, 1, :group, 'GENERIC', 2 * n, now(),
       jsonb_build_object('avg_metrics', jsonb_build_object('loss', hashint4(n) % 1000, 'other', n))
  FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS n
"""


async def insert(db: Database, trial: int, first: int, last: int, *, group: str = "custom") -> None:
    async with db.transaction() as connection:
        await connection.execute(text(INSERT), {"trial": trial, "first": first, "last": last, "group": group})


async def asked(db: Database, owner: httpx.AsyncClient, trial: int, **query: Any) -> int:
    """Ask for the series as a page does, whose answer has to be the points that are chosen report by report; returns
    how many chunks there are then."""
    parameters = {"trialIds": trial, "metricNames": "loss", "group": "custom", "maxDatapoints": 100, **query}
    answer = await owner.get(SERIES, params=parameters)
    assert answer.status_code == 200, answer.text
    (series,) = answer.json()["trials"][0]["metrics"]
    wanted = WantedSeries(
        group="custom",
        names=["loss"],
        first_batches=query.get("startBatches", 0),
        last_batches=query.get("endBatches", 0),
    )
    async with db.transaction() as connection:
        expected = await read_points(connection, trial, wanted, limit=100)
    shown = [(each["batches"], each["values"]) for each in series["data"]]
    assert shown == [(each.batches, each.values) for each in expected]
    return len(await rows_of(db, metric_chunks, trial_id=trial))


async def test_levels_are_made_when_a_long_series_is_asked_for(
    db: Database, owner: httpx.AsyncClient, run: Run
) -> None:
    await insert(db, run.trial, 1, MANY_REPORTS - 1)
    await insert(db, run.trial, 1, MANY_REPORTS, group="not asked for")
    assert await asked(db, owner, run.trial) == 0, "it is read in no time without"
    await insert(db, run.trial, MANY_REPORTS, MANY_REPORTS)
    chunks = MANY_REPORTS // STORED.chunk
    assert await asked(db, owner, run.trial) == chunks
    assert await asked(db, owner, run.trial) == chunks
    assert await asked(db, owner, run.trial, startBatches=777, endBatches=14_223) == chunks

    await insert(db, run.trial, MANY_REPORTS + 1, MANY_REPORTS + STORED.chunk - 1)
    assert await asked(db, owner, run.trial) == chunks, "what is behind them is read"
    await insert(db, run.trial, MANY_REPORTS + STORED.chunk, MANY_REPORTS + STORED.chunk)
    assert await asked(db, owner, run.trial) == chunks + 1
    assert await asked(db, owner, run.trial, startBatches=19_990) == chunks + 1


async def test_series_is_answered_while_its_trial_is_written(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    """Whoever writes reports is not waited for: the points are chosen from the reports."""
    await insert(db, run.trial, 1, MANY_REPORTS)
    async with db.transaction() as connection:
        await connection.execute(text("SELECT FROM trials WHERE id = :id FOR NO KEY UPDATE"), {"id": run.trial})
        assert await asked(db, owner, run.trial) == 0
    assert await asked(db, owner, run.trial) == MANY_REPORTS // STORED.chunk


async def test_what_is_read_piece_by_piece_is_not_sorted(db: Database, run: Run) -> None:
    """Each piece of a series costs itself, and not all that is behind it."""
    await insert(db, run.trial, 1, MANY_REPORTS)
    async with db.read() as connection:
        await connection.execute(text("ANALYZE metrics"))
        driver = await driver_connection(connection)
        asked: list[asyncpg.LoggedQuery] = []
        driver.add_query_logger(asked.append)
        await PackedSeries(driver, run.trial, "custom", ["loss"]).package(0, 2**31 - 1, 200)
        sealed = await seal(driver, run.trial, "custom")
        assert sealed is not None
        await add_chunks(driver, run.trial, "custom", "loss", sealed, shape=Shape(block=2, blocks=5))
        driver.remove_query_logger(asked.append)
        reads = [each for each in asked if "string_agg" in each.query]
        assert len(reads) > 2
        for read in (reads[0], reads[1]):
            plan = await driver.fetch(f"EXPLAIN {read.query}", *read.args)
            lines = [line for (line,) in plan]
            assert not [line for line in lines if "Sort" in line], lines


async def test_no_levels_are_made_during_an_import(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    """It writes reports of a trial in any order, and locks nothing."""
    await insert(db, run.trial, 1, MANY_REPORTS)
    async with db.transaction() as connection:
        await connection.execute(text("INSERT INTO imports (source) VALUES ('old')"))
    assert await asked(db, owner, run.trial) == 0
    async with db.transaction() as connection:
        await connection.execute(text("UPDATE imports SET finished_at = now()"))
    assert await asked(db, owner, run.trial) == MANY_REPORTS // STORED.chunk
