"""The functions of the database take the same locks of summaries as the services."""

from __future__ import annotations

from sqlalchemy import text

from libs.db.engine import Database, driver_connection
from libs.db.tables.metrics import SUMMARY_LOCKS
from services.api.metrics.rows.append_path import append
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.metrics.test_folding import Reports
from tests.integration.api.tasks.service import new_run


async def test_nothing_is_appended_to_a_trial_whose_summary_somebody_has_locked(db: Database) -> None:
    trial, reports = (await new_run(db)).trial, Reports(db)
    await reports.store(a_report(trial, 1), a_report(trial, 2))
    async with db.transaction() as settling, db.read() as connection:
        await settling.execute(text(f"SELECT pg_advisory_xact_lock({SUMMARY_LOCKS}, {trial % 2147483647})"))
        driver = await driver_connection(connection)
        assert await append(driver, reports.known.prepare([a_report(trial, 3)]), []) == set()


async def test_guard_of_the_column_takes_the_same_lock(db: Database) -> None:
    async with db.read() as connection:
        found = await connection.execute(text("SELECT prosrc FROM pg_proc WHERE proname = 'guard_summary'"))
    assert f"pg_advisory_xact_lock({SUMMARY_LOCKS}, " in found.scalar_one()
