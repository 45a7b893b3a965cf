"""The owner of the summaries in rows: what was appended is folded, settled, and what was replaced is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import asyncpg
import pytest

from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import Database, driver_connection
from libs.db.tables.metrics import metric_garbage, metric_groups, metric_marks, metric_summaries
from libs.db.tables.trials import trials
from services.api.metrics.locked_path import store_locked
from services.api.metrics.report import MetricReport
from services.api.metrics.rows import former_release
from services.api.metrics.rows import owner as owner_module
from services.api.metrics.rows import statements as sql
from services.api.metrics.rows.append_path import AppendableTrials, append
from services.api.metrics.rows.back_fill import BackFill, BackFillPace
from services.api.metrics.rows.former_release import FormerRelease
from services.api.metrics.rows.owner import FAILED, OWNER_LOCK, FoldingPace, Plans, SummaryKeeper, keep_summaries
from services.api.metrics.rows.settling import settle, settle_all
from tests.harness.waiting import eventually
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.tasks.service import new_run, row_of, rows_of


class Reports:
    """Stores reports as the writer does, the first ones of a group by the locked path."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.known = AppendableTrials()

    async def store(self, *reports: MetricReport) -> None:
        async with self._db.read() as connection:
            driver = await driver_connection(connection)
            for report in reports:
                if self.known.covers(report):
                    appended = await append(driver, self.known.prepare([report]), [])
                    self.known.advance(appended)
                    if appended:
                        continue
                async with driver.transaction():
                    outcome = await store_locked(driver, [report], with_experiments=True, to_rows=True)
                assert outcome.errors == [None]
                self.known.remember(outcome.in_rows)


class Gone(FormerRelease):
    """Nobody of the release before is connected."""

    async def look(self, driver: Any) -> None:
        self.is_connected = False


class There(FormerRelease):
    async def look(self, driver: Any) -> None:
        self.is_connected = True


@pytest.fixture
def reports(db: Database) -> Reports:
    return Reports(db)


AT_ONCE: Final = FoldingPace(first_after_s=0)
ASKING: Final = """
SELECT count(*) = $1
  FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'resolute-summaries' AND query <> ''
"""
CHANGE_SUMMARY: Final = "UPDATE metric_summaries SET summary = $2::jsonb WHERE summary_id = $1"


async def look(db: Database, former: FormerRelease, *, times: int = 1, pace: FoldingPace = AT_ONCE) -> None:
    async with db.read() as connection:
        owner = SummaryKeeper(await driver_connection(connection), former, pace)
        for _ in range(times):
            await owner.look()


async def names_of(db: Database, trial: int) -> Sequence[Any]:
    (group,) = await rows_of(db, metric_groups, trial_id=trial, metric_group="training")
    return await rows_of(db, metric_summaries, summary_id=group.summary_id)


async def test_report_beyond_all_others_changes_no_summary(db: Database, reports: Reports) -> None:
    trial = (await new_run(db)).trial
    await reports.store(*(a_report(trial, step) for step in range(1, 6)))
    assert await names_of(db, trial) == []
    row = await row_of(db, trials, id=trial)
    assert (row.summary_in_rows, row.total_batches, row.summary_metrics) == (True, 0, {})
    assert len(await rows_of(db, metric_marks, trial_id=trial)) == 1


async def test_owner_folds_what_was_appended_and_settles_it(db: Database, reports: Reports) -> None:
    trial = (await new_run(db)).trial
    await reports.store(*(a_report(trial, step) for step in range(1, 251)))
    await look(db, Gone(), pace=FoldingPace())
    assert await names_of(db, trial) == [], "a moment later there may be more"
    await look(db, Gone())
    (name,) = await names_of(db, trial)
    assert (name.name, name.summary["count"], name.last, name.last_step) == ("loss", 250, 250.0, 250)
    row = await row_of(db, trials, id=trial)
    assert (row.summary_in_rows, row.total_batches) == (True, 250)
    assert row.summary_metrics["avg_metrics"]["loss"]["sum"] == sum(range(251))
    assert await rows_of(db, metric_marks, trial_id=trial) == []


async def test_name_that_the_newest_report_lacks_has_no_last_value(db: Database, reports: Reports) -> None:
    trial = (await new_run(db)).trial
    await reports.store(a_report(trial, 1, avg={"a": 1, "b": 2}), a_report(trial, 2, avg={"a": 3}))
    await look(db, Gone())
    rows = {row.name: row for row in await names_of(db, trial)}
    assert (rows["a"].last_step, rows["b"].last_step) == (2, 1)
    async with db.read() as connection:
        await settle(await driver_connection(connection), trial)
    summary = (await row_of(db, trials, id=trial)).summary_metrics["avg_metrics"]
    assert (summary["a"]["last"], "last" in summary["b"]) == (3, False)


async def test_names_of_any_length_have_rows_of_their_own(db: Database, reports: Reports) -> None:
    trial = (await new_run(db)).trial
    names = ["", "n" * 512, "n" * 513, "n" * 20_000, "\N{SNOWMAN}" * 700, "n" * 20_001, "\N{SNOWMAN}" * 701]
    await reports.store(*(a_report(trial, step, avg=dict.fromkeys(names, step)) for step in (1, 2)))
    await look(db, Gone())
    rows = await names_of(db, trial)
    assert {row.name: row.summary["count"] for row in rows} == dict.fromkeys(names, 2)
    assert max(len(row.name_key.encode()) for row in rows) <= 513


async def test_replaced_and_orphaned_summaries_are_deleted(db: Database, reports: Reports) -> None:
    trial = (await new_run(db)).trial
    await reports.store(a_report(trial, 1), a_report(trial, 5))
    await look(db, Gone())
    (before,) = await rows_of(db, metric_groups, trial_id=trial)
    async with db.read() as connection:
        driver = await driver_connection(connection)
        await driver.execute("UPDATE trials SET run_id = 2 WHERE id = $1", trial)
        await reports.store(a_report(trial, 3, run=2))
        (after,) = await rows_of(db, metric_groups, trial_id=trial)
        assert after.summary_id != before.summary_id
        await look(db, Gone(), times=2)
        assert await rows_of(db, metric_garbage) == []
        assert await rows_of(db, metric_summaries, summary_id=before.summary_id) == []
        assert [row.summary["sum"] for row in await names_of(db, trial)] == [4]
        await driver.execute("DELETE FROM trials WHERE id = $1", trial)
    await look(db, Gone(), times=2)
    assert await rows_of(db, metric_summaries, summary_id=after.summary_id) == []
    assert await rows_of(db, metric_groups, trial_id=trial) == []
    assert await rows_of(db, metric_marks, trial_id=trial) == []


async def test_trial_that_takes_long_to_settle_is_folded_meanwhile(db: Database, reports: Reports) -> None:
    trial = (await new_run(db)).trial
    async with db.read() as connection:
        slow = FoldingPace(first_after_s=0, again_after_s=0, share=1_000_000)
        owner = SummaryKeeper(await driver_connection(connection), Gone(), slow)
        for step in (1, 2, 3):
            await reports.store(a_report(trial, 2 * step), a_report(trial, 2 * step + 1))
            await owner.look()
    (name,) = await names_of(db, trial)
    assert name.last_step == 7
    row = await row_of(db, trials, id=trial)
    assert row.total_batches == 3, "that was settled at first"


async def test_trial_goes_back_to_its_column_while_the_release_before_is_there(db: Database, reports: Reports) -> None:
    trial = (await new_run(db)).trial
    await reports.store(a_report(trial, 1), a_report(trial, 2))
    await look(db, There())
    row = await row_of(db, trials, id=trial)
    assert (row.summary_in_rows, row.total_batches, row.summary_metrics["avg_metrics"]["loss"]["sum"]) == (False, 2, 3)
    assert await rows_of(db, metric_groups, trial_id=trial) == []


async def asking_for_ownership(db: Database, replicas: int) -> None:
    """Wait until so many replicas are connected and have asked for the lock; not all of them can have it."""
    async with db.read() as connection:
        driver = await driver_connection(connection)
        await eventually(lambda: driver.fetchval(ASKING, replicas))


async def test_one_owner_settles_what_is_left_when_it_is_stopped(db: Database, reports: Reports) -> None:
    trial = (await new_run(db)).trial
    owning = [asyncio.create_task(keep_summaries(db, Gone())) for _ in range(2)]
    await asking_for_ownership(db, 2)
    await reports.store(a_report(trial, 1), a_report(trial, 2))
    for task in owning:
        task.cancel()
    await asyncio.gather(*owning, return_exceptions=True)
    assert (await row_of(db, trials, id=trial)).total_batches == 2
    assert await rows_of(db, metric_marks, trial_id=trial) == []


async def test_trial_that_cannot_be_folded_holds_up_no_other(
    db: Database, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_module, "backoff_s", lambda failures, *, longest_s: 60.0 * failures)
    broken, other = [(await new_run(db)).trial for _ in range(2)]
    await reports.store(a_report(broken, 1), a_report(broken, 5))
    await look(db, Gone())
    async with db.read() as connection:
        driver = await driver_connection(connection)
        (group,) = await rows_of(db, metric_groups, trial_id=broken)
        await driver.execute(CHANGE_SUMMARY, group.summary_id, '{"type": 5}')
        await reports.store(a_report(broken, 6), a_report(other, 1), a_report(other, 2))
        plans: Plans = {}
        owner = SummaryKeeper(driver, Gone(), AT_ONCE, plans=plans)
        failed = _failures()
        await owner.look()
        assert await rows_of(db, metric_marks, trial_id=other) == []
        assert len(await rows_of(db, metric_marks, trial_id=broken)) == 1
        await owner.look()
        assert _failures() == failed + 1, "it is left alone for a while"
        assert (await settle_all(driver)).left == [broken]
        await driver.execute(CHANGE_SUMMARY, group.summary_id, '{"type": "null"}')
        plans[broken].tries_at_s = 0
        await owner.look()
    assert await rows_of(db, metric_marks, trial_id=broken) == []


async def test_owner_goes_on_after_any_error_of_the_database(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    class Refused(Gone):
        async def look(self, driver: Any) -> None:
            nonlocal looks
            looks += 1
            await driver.execute("SET LOCAL statement_timeout = 1; SELECT pg_sleep(1)")

    monkeypatch.setattr(owner_module, "_RETRY_S", 0.05)
    owning = asyncio.create_task(keep_summaries(db, Refused()))

    def has_tried_again() -> bool:
        assert not owning.done()
        return looks > 1

    await eventually(has_tried_again)
    owning.cancel()
    await asyncio.gather(owning, return_exceptions=True)


async def test_trial_that_takes_for_ever_holds_up_no_other(
    db: Database, database_url: str, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, other = [(await new_run(db)).trial for _ in range(2)]
    await reports.store(a_report(stuck, 1), a_report(other, 1))
    monkeypatch.setattr(owner_module, "_COMMAND_TIMEOUT_S", 0.5)
    blocking = await asyncpg.connect(asyncpg_url(database_url))
    try:
        async with blocking.transaction():
            await blocking.execute("SELECT FROM trials WHERE id = $1 FOR UPDATE", stuck)
            owning = asyncio.create_task(keep_summaries(db, There()))

            async def is_settled() -> bool:
                assert not owning.done()
                return not await rows_of(db, metric_marks, trial_id=other)

            await eventually(is_settled)
            assert len(await rows_of(db, metric_marks, trial_id=stuck)) == 1
            owning.cancel()
            await asyncio.gather(owning, return_exceptions=True)
    finally:
        await blocking.close()


@pytest.mark.parametrize("owner_leaves", [True, False])
async def test_replica_that_stops_settles_what_the_owner_has_left(
    db: Database, database_url: str, reports: Reports, monkeypatch: pytest.MonkeyPatch, owner_leaves: bool
) -> None:
    trial = (await new_run(db)).trial
    owner = await asyncpg.connect(asyncpg_url(database_url))
    try:
        await owner.execute("SELECT pg_advisory_lock($1)", OWNER_LOCK)
        waiting = asyncio.create_task(keep_summaries(db, Gone()))
        await asking_for_ownership(db, 1)
        monkeypatch.setattr(owner_module, "_FAREWELL_S", 60.0 if owner_leaves else 0.5)
        await reports.store(a_report(trial, 1), a_report(trial, 2))
        waiting.cancel()
        await asyncio.sleep(0.2)
        if owner_leaves:
            owner.terminate()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    finally:
        await owner.close()
    assert (await row_of(db, trials, id=trial)).total_batches == (2 if owner_leaves else 0)
    assert len(await rows_of(db, metric_marks, trial_id=trial)) == (0 if owner_leaves else 1)


async def test_replica_that_stops_while_it_connects_settles_what_there_is(
    db: Database, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = (await new_run(db)).trial
    await reports.store(a_report(trial, 1), a_report(trial, 2))
    connect, is_connecting = owner_module.connect, asyncio.Event()

    async def connect_at_second_try(url: str) -> Any:
        if not is_connecting.is_set():
            is_connecting.set()
            await asyncio.Event().wait()
        return await connect(url)

    monkeypatch.setattr(owner_module, "connect", connect_at_second_try)
    stopped = asyncio.create_task(keep_summaries(db, Gone()))
    await asyncio.wait_for(is_connecting.wait(), 60)
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    assert (await row_of(db, trials, id=trial)).total_batches == 2
    assert await rows_of(db, metric_marks, trial_id=trial) == []


class Asked:
    """An asyncpg connection that says what was asked by it, transactions apart."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.statements: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._driver, name)
        if name not in ("fetch", "fetchval", "fetchrow", "execute"):
            return found

        def ask(statement: str, *arguments: Any) -> Any:
            self.statements.append(statement)
            return found(statement, *arguments)

        return ask


async def test_owner_without_work_asks_for_marks_only(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FORMER_EVERY_S", "_GARBAGE_EVERY_S"):
        monkeypatch.setattr(owner_module, name, 60.0)
    async with db.read() as connection:
        driver = Asked(await driver_connection(connection))
        back_fill = BackFill(BackFillPace(moment_s=600, again_after_s=600))
        owner = SummaryKeeper(driver, FormerRelease(), AT_ONCE, back_fill=back_fill)

        async def asks() -> list[str]:
            driver.statements.clear()
            await owner.look()
            return driver.statements

        assert len(await asks()) > 2
        for _ in range(20):  # what other tests have left
            if await asks() == [sql.MARKED]:
                break
        assert await asks() == [sql.MARKED]


async def test_what_the_owner_has_seen_is_not_looked_up_again(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(former_release, "_LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(former_release, "_NEWS_S", 60.0)
    looks = 0

    class Watched(FormerRelease):
        async def look(self, driver: Any) -> None:
            nonlocal looks
            looks += 1

    former = Watched()
    async with db.read() as connection:
        await former.look_again(await driver_connection(connection), after_s=0)
    following = asyncio.create_task(former.follow(db))
    await asyncio.sleep(0.3)
    assert looks == 1
    monkeypatch.setattr(former_release, "_NEWS_S", 0.0)
    await eventually(lambda: looks > 2)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def _failures() -> float:
    return sum(sample.value for metric in FAILED.collect() for sample in metric.samples if "_total" in sample.name)
