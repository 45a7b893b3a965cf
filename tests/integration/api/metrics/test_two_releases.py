"""Services of the release before write summaries into the column of a trial, while others have them in rows."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import asyncpg
import pytest

from libs.db.connecting.settings import FORMER_APPLICATION, asyncpg_url
from libs.db.engine import Database, driver_connection
from libs.db.tables.metrics import metric_marks
from libs.db.tables.trials import trials
from services.api.metrics.rows.append_path import append
from services.api.metrics.rows.former_release import FormerRelease
from services.api.metrics.rows.settling import settle
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.metrics.test_folding import Reports
from tests.integration.api.tasks.service import new_run, row_of, rows_of

# How often the release before tries a transaction again that PostgreSQL could not serialize.
RETRIES: Final = 5
# What it does with a report, in short.
WRITE: Final = """
UPDATE trials
   SET total_batches = 9, summary_metrics = jsonb_set(summary_metrics, '{avg_metrics,old}', '{"type": "null"}')
 WHERE id = $1
"""


async def settled(db: Database, trial: int, *, to_column: bool = False) -> None:
    async with db.read() as connection:
        await settle(await driver_connection(connection), trial, to_column=to_column)


async def retried(former: asyncpg.Connection, trial: int) -> None:
    """Write as the release before does after a serialization failure: the owner's connection may still be opening."""
    for _ in range(RETRIES):
        with suppress(asyncpg.SerializationError):
            await former.execute(WRITE, trial)
            return
    pytest.fail("the trial was not settled between two tries")


async def test_settled_trial_goes_back_to_the_column(db: Database) -> None:
    trial, reports = (await new_run(db)).trial, Reports(db)
    await reports.store(a_report(trial, 1), a_report(trial, 2))
    await settled(db, trial)
    async with db.read() as connection:
        driver = await driver_connection(connection)
        await driver.execute(WRITE, trial)
        assert await append(driver, reports.known.prepare([a_report(trial, 10)]), []) == set()
    row = await row_of(db, trials, id=trial)
    assert (row.summary_in_rows, sorted(row.summary_metrics["avg_metrics"])) == (False, ["loss", "old"])
    await reports.store(a_report(trial, 11))
    await settled(db, trial)
    row = await row_of(db, trials, id=trial)
    assert row.summary_in_rows
    assert {name: each.get("count") for name, each in row.summary_metrics["avg_metrics"].items()} == {
        "loss": 3,
        "old": None,
    }


async def test_writer_waits_for_reports_that_the_column_lacks(db: Database, database_url: str) -> None:
    trial, reports = (await new_run(db)).trial, Reports(db)
    await reports.store(a_report(trial, 1), a_report(trial, 2))
    former = await asyncpg.connect(asyncpg_url(database_url))
    try:
        writing = asyncio.create_task(former.execute(WRITE, trial))
        await asyncio.sleep(0.2)
        settling = asyncio.create_task(settled(db, trial, to_column=True))
        with pytest.raises(asyncpg.SerializationError):
            await writing
        await retried(former, trial)
        await settling
    finally:
        await former.close()
    summary = (await row_of(db, trials, id=trial)).summary_metrics["avg_metrics"]
    assert (summary["loss"]["count"], "old" in summary) == (2, True)
    assert await rows_of(db, metric_marks, trial_id=trial) == []


async def test_report_that_is_being_appended_is_not_left_out(db: Database, database_url: str) -> None:
    trial, reports = (await new_run(db)).trial, Reports(db)
    await reports.store(a_report(trial, 1), a_report(trial, 2))
    await settled(db, trial)
    new, former = [await asyncpg.connect(asyncpg_url(database_url)) for _ in range(2)]
    try:
        appending = new.transaction()
        await appending.start()
        assert await append(new, reports.known.prepare([a_report(trial, 3)]), [])
        writing: asyncio.Task[Any] = asyncio.create_task(former.execute(WRITE, trial))
        await asyncio.sleep(0.3)
        assert not writing.done()
        await appending.commit()
        with pytest.raises(asyncpg.SerializationError):
            await writing
    finally:
        await new.close()
        await former.close()


async def test_former_release_is_known_by_its_connections(db: Database, database_url: str) -> None:
    former = FormerRelease()
    assert former.is_connected, "until somebody has looked"
    async with db.read() as connection:
        driver = await driver_connection(connection)
        await former.look(driver)
        assert former.is_gone()
        other = await asyncpg.connect(
            asyncpg_url(database_url), server_settings={"application_name": FORMER_APPLICATION}
        )
        try:
            await former.look(driver)
            assert former.is_connected
        finally:
            await other.close()
