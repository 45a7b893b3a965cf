"""Summaries that were in columns when the release before was updated are put into rows, a bounded number at a time."""

from __future__ import annotations

import asyncio

import pytest

from libs.db.engine import Database, driver_connection
from libs.db.tables.metrics import metric_groups
from libs.db.tables.trials import trials
from services.api.metrics.locked_path import store_locked
from services.api.metrics.rows import promotion
from services.api.metrics.rows.promotion import next_to_promote
from services.api.metrics.rows.settling import settle
from services.api.metrics.writer import MetricsWriter
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.tasks.service import new_run, row_of, rows_of

WIDE = {"a": 1.0, "b": 2.0, "c": 3.0}


async def store(db: Database, several: list[int], step: int, *, to_rows: bool) -> None:
    batch = [a_report(trial, step, avg=WIDE) for trial in several]
    async with db.read() as connection:
        driver = await driver_connection(connection)
        async with driver.transaction():
            outcome = await store_locked(driver, batch, with_experiments=False, to_rows=to_rows)
    assert outcome.errors == [None] * len(batch)
    assert sorted([*outcome.written, *outcome.in_rows]) == sorted(several)


async def test_batch_puts_no_more_into_rows_than_a_transaction_can(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promotion, "MOST_NAMES", 7)
    several = [(await new_run(db)).trial for _ in range(5)]
    await store(db, several, 1, to_rows=False)
    for step, in_rows in ((2, 2), (3, 4), (4, 5), (5, 5)):
        await store(db, several, step, to_rows=True)
        rows = [await row_of(db, trials, id=trial) for trial in several]
        assert [row.summary_in_rows for row in rows] == [True] * in_rows + [False] * (5 - in_rows)
    for trial in several:
        async with db.read() as connection:
            await settle(await driver_connection(connection), trial)
        assert len(await rows_of(db, metric_groups, trial_id=trial)) == 1
        row = await row_of(db, trials, id=trial)
        assert {name: (each["count"], each["last"]) for name, each in row.summary_metrics["avg_metrics"].items()} == {
            name: (5, value) for name, value in WIDE.items()
        }


def test_trial_with_more_metrics_than_that_is_put_into_rows_alone() -> None:
    most = promotion.MOST_NAMES
    assert next_to_promote({1: most + 1, 2: 0, 3: 1}) == [1]
    assert next_to_promote({1: most, 2: 1, 3: 0}) == [1, 3]


async def test_trial_that_is_left_in_its_column_has_its_turn_with_its_next_report(db: Database) -> None:
    trial, is_update_over = (await new_run(db)).trial, False
    writer = MetricsWriter(db=db, to_rows=lambda: is_update_over)
    running = asyncio.create_task(writer.run())
    try:
        for step in (1, 2):
            await writer.store(a_report(trial, step))
        assert not (await row_of(db, trials, id=trial)).summary_in_rows
        is_update_over = True
        await writer.store(a_report(trial, 3))
        assert (await row_of(db, trials, id=trial)).summary_in_rows
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
