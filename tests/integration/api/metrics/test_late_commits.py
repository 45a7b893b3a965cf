"""Reports that are committed in another order than they were numbered in are neither lost nor counted twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import Database, driver_connection
from libs.db.tables.trials import trials
from services.api.metrics.locked_path import store_locked
from services.api.metrics.report import MetricReport
from services.api.metrics.rows.append_path import AppendableTrials, append
from services.api.metrics.rows.folding import fold_sealed, fold_trial, seal
from services.api.metrics.rows.settling import settle
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.tasks.service import new_run, row_of


@asynccontextmanager
async def session(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        yield connection
    finally:
        connection.terminate()


async def begin(db: Database) -> tuple[int, AppendableTrials]:
    """A trial in rows that has reported its first step."""
    trial = (await new_run(db)).trial
    known = AppendableTrials()
    known.remember(await store(db, a_report(trial, 1)))
    return trial, known


async def store(db: Database, report: MetricReport) -> dict[int, Any]:
    async with db.read() as connection:
        driver = await driver_connection(connection)
        async with driver.transaction():
            outcome = await store_locked(driver, [report], with_experiments=True, to_rows=True)
    assert outcome.errors == [None]
    return outcome.in_rows


async def summary_of(db: Database, trial: int) -> Any:
    async with db.read() as connection:
        await settle(await driver_connection(connection), trial)
    return (await row_of(db, trials, id=trial)).summary_metrics["avg_metrics"]["loss"]


async def test_lower_step_that_is_committed_last_is_folded(db: Database, database_url: str) -> None:
    trial, known = await begin(db)
    async with session(database_url) as early, session(database_url) as late, session(database_url) as owner:
        one = early.transaction()
        await one.start()
        assert await append(early, known.prepare([a_report(trial, 2)]), [])
        assert await append(late, known.prepare([a_report(trial, 3)]), [])
        folding = asyncio.create_task(fold_trial(owner, trial))
        await asyncio.sleep(0.3)
        assert not folding.done(), "the boundary waits for the report that is not committed"
        await one.commit()
        assert await folding == 3
    assert await summary_of(db, trial) == {
        "type": "number", "count": 3, "sum": 6.0, "min": 1.0, "max": 3.0, "mean": 2.0, "last": 3.0
    }  # fmt: skip


async def test_nothing_is_appended_before_the_boundary(db: Database, database_url: str) -> None:
    trial, known = await begin(db)
    async with session(database_url) as driver:
        assert await append(driver, known.prepare([a_report(trial, 5)]), [])
        (sealed,) = await seal(driver, trial)
        assert await append(driver, known.prepare([a_report(trial, 4)]), []) == set(), "the locked path decides"
        await store(db, a_report(trial, 4))
        await fold_sealed(driver, sealed)
    assert (await summary_of(db, trial))["count"] == 3


async def test_what_was_sealed_before_a_roll_back_is_not_folded(db: Database, database_url: str) -> None:
    trial, known = await begin(db)
    async with session(database_url) as driver, session(database_url) as other:
        assert await append(driver, known.prepare([a_report(trial, 9)]), [])
        (sealed,) = await seal(driver, trial)
        await driver.execute("UPDATE trials SET run_id = 2 WHERE id = $1", trial)
        known.remember(await store(db, a_report(trial, 5, run=2)))
        late = other.transaction()
        await late.start()
        assert await append(other, known.prepare([a_report(trial, 6, run=2)]), [])
        assert await append(driver, known.prepare([a_report(trial, 7, run=2)]), [])
        assert await fold_sealed(driver, sealed) == 0
        await late.commit()
    assert (await summary_of(db, trial))["sum"] == 1 + 5 + 6 + 7


async def test_report_of_an_older_run_is_not_left_behind_by_a_roll_back(db: Database, database_url: str) -> None:
    trial, known = await begin(db)
    async with session(database_url) as older, session(database_url) as other:
        transaction = older.transaction()
        await transaction.start()
        assert await append(older, known.prepare([a_report(trial, 7)]), [])
        await other.execute("UPDATE trials SET run_id = 2 WHERE id = $1", trial)
        rolling_back = asyncio.create_task(store(db, a_report(trial, 2, run=2)))
        await asyncio.sleep(0.3)
        assert not rolling_back.done()
        await transaction.commit()
        await rolling_back
        assert await other.fetch("SELECT total_batches FROM metrics WHERE trial_id = $1 AND archived", trial) == [(7,)]
    assert (await summary_of(db, trial))["sum"] == 3
    assert (await row_of(db, trials, id=trial)).total_batches == 2


@pytest.mark.parametrize(
    "change", ["run_id = 2", "restarts = restarts + 1", "state = 'PAUSED'", "summary_in_rows = false"]
)
async def test_trial_that_has_changed_is_not_appended_to(db: Database, database_url: str, change: str) -> None:
    trial, known = await begin(db)
    async with session(database_url) as driver:
        await driver.execute(f"UPDATE trials SET {change} WHERE id = $1", trial)
        assert await append(driver, known.prepare([a_report(trial, 2)]), []) == set()


async def test_repeated_report_is_not_appended_again(db: Database, database_url: str) -> None:
    trial, known = await begin(db)
    async with session(database_url) as one, session(database_url) as other:
        transaction = one.transaction()
        await transaction.start()
        assert await append(one, known.prepare([a_report(trial, 2)]), [])
        again = asyncio.create_task(append(other, known.prepare([a_report(trial, 2)]), []))
        await asyncio.sleep(0.2)
        await transaction.commit()
        assert await again == set()
    await store(db, a_report(trial, 2))
    assert (await summary_of(db, trial))["count"] == 2
