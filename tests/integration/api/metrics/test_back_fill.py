"""Summaries of trials that nobody reports any more are put into rows, and nobody notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

import asyncpg
import pytest
from structlog.testing import capture_logs

from libs.db.connecting.settings import IMPORT_APPLICATION, asyncpg_url
from libs.db.engine import Database
from libs.db.tables.metrics import metric_garbage, metric_groups, metric_marks, metric_summaries
from libs.db.tables.trials import trials
from services.api.metrics.locked_path import store_locked
from services.api.metrics.report import MetricReport
from services.api.metrics.rows import back_fill as module
from services.api.metrics.rows import staging
from services.api.metrics.rows.back_fill import BackFill, BackFillPace, batches
from services.api.metrics.rows.garbage import delete_garbage
from services.api.metrics.rows.owner import SummaryKeeper
from services.api.metrics.rows.settling import settle
from tests.harness.waiting import eventually
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.metrics.test_folding import Gone, There
from tests.integration.api.tasks.service import new_run, row_of, rows_of, set_trial

ALL_AT_ONCE: Final = BackFillPace(moment_s=600, again_after_s=0)


@pytest.fixture
async def driver(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    yield connection
    await connection.close()


async def store(driver: Any, reports: Sequence[MetricReport], *, to_rows: bool = False) -> None:
    for report in reports:
        async with driver.transaction():
            outcome = await store_locked(driver, [report], with_experiments=True, to_rows=to_rows)
        assert outcome.errors == [None]


async def trained(db: Database, driver: Any, *, steps: int = 3) -> int:
    """A trial whose summary is in its column."""
    trial = (await new_run(db)).trial
    await store(driver, [a_report(trial, step) for step in range(1, steps + 1)])
    assert not await is_in_rows(db, trial)
    return trial


async def is_in_rows(db: Database, trial: int) -> bool:
    found: bool = (await row_of(db, trials, id=trial)).summary_in_rows
    return found


def history(trial: int, run: int) -> list[MetricReport]:
    """Reports ahead, late, and of a run that takes some of the first one back; with names that come and go."""
    steps = (2, 4, 6, 5, 8) if run == 1 else (3, 7, 6, 9)
    return [
        a_report(trial, step, run=run, group=group, avg={"loss": step / 8, f"of.{run}": "NaN", f"at.{step % 2}": "x"})
        for step in steps
        for group in ("training", "validation", "custom")
    ]


async def test_trial_goes_on_from_its_rows_as_it_would_have_from_its_column(
    db: Database, driver: asyncpg.Connection
) -> None:
    one, other = [(await new_run(db)).trial for _ in range(2)]
    for trial in (one, other):
        await store(driver, history(trial, 1))
    before = (await row_of(db, trials, id=one))._asdict()
    await BackFill(ALL_AT_ONCE).go_on(driver)
    after = (await row_of(db, trials, id=one))._asdict()
    assert after == {**before, "summary_in_rows": True}, "readers see what they saw"
    assert await rows_of(db, metric_marks, trial_id=one) == []
    await driver.execute("UPDATE trials SET summary_in_rows = false WHERE id = $1", other)
    for trial, to_rows in ((one, True), (other, False)):
        await set_trial(db, trial, run_id=2)
        await store(driver, history(trial, 2), to_rows=to_rows)
    await settle(driver, one)
    ends = [await row_of(db, trials, id=trial) for trial in (one, other)]
    assert [row.summary_in_rows for row in ends] == [True, False]
    assert ends[0].summary_metrics == ends[1].summary_metrics
    assert ends[0].total_batches == ends[1].total_batches


async def test_release_before_takes_a_trial_back_and_it_follows_once_more(
    db: Database, driver: asyncpg.Connection
) -> None:
    trial = await trained(db, driver)
    back_fill = BackFill(ALL_AT_ONCE)
    there = SummaryKeeper(driver, There(), back_fill=back_fill)
    gone = SummaryKeeper(driver, Gone(), back_fill=back_fill)
    await there.look()
    assert not await is_in_rows(db, trial), "the release before would have to take it back with its next report"
    await gone.look()
    assert await is_in_rows(db, trial)
    await driver.execute("UPDATE trials SET summary_metrics = summary_metrics WHERE id = $1", trial)
    assert not await is_in_rows(db, trial)
    await there.look()
    await gone.look()
    assert await is_in_rows(db, trial)
    assert len(await rows_of(db, metric_groups, trial_id=trial)) == 1


async def test_trial_that_cannot_be_put_into_rows_is_named_once_and_holds_up_no_other(
    db: Database, driver: asyncpg.Connection
) -> None:
    first, odd, last = [await trained(db, driver) for _ in range(3)]
    await set_trial(db, odd, summary_metrics={"avg_metrics": {"loss": 5}})
    back_fill = BackFill(ALL_AT_ONCE)
    with capture_logs() as logged:
        for _ in range(3):
            await back_fill.go_on(driver)
    assert [entry["trial_id"] for entry in logged if entry["event"] == "metrics.trial_left_in_column"] == [odd]
    assert [await is_in_rows(db, trial) for trial in (first, odd, last)] == [True, False, True]


async def test_trial_at_which_the_connection_is_lost_is_left_when_it_was_alone(
    db: Database, driver: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, fatal, last = [await trained(db, driver) for _ in range(3)]

    async def move(driver: Any, trial_ids: Sequence[int]) -> staging.Moved:
        if fatal in trial_ids:
            raise ConnectionResetError
        return await staging.move_into_rows(driver, trial_ids)

    monkeypatch.setattr(module, "move_into_rows", move)
    back_fill, losses = BackFill(ALL_AT_ONCE), 0
    for _ in range(10):
        try:
            await back_fill.go_on(driver)
        except ConnectionResetError:
            losses += 1
    assert losses == 4, "once among others, three times alone"
    assert [await is_in_rows(db, trial) for trial in (first, fatal, last)] == [True, False, True]


async def test_trial_that_somebody_is_changing_is_not_waited_for(
    db: Database, driver: asyncpg.Connection, database_url: str
) -> None:
    held, free = [await trained(db, driver) for _ in range(2)]
    back_fill = BackFill(ALL_AT_ONCE)
    other = await asyncpg.connect(asyncpg_url(database_url))
    try:
        async with other.transaction():
            await other.execute("SELECT FROM trials WHERE id = $1 FOR UPDATE", held)
            await asyncio.wait_for(back_fill.go_on(driver), 60)
            assert [await is_in_rows(db, trial) for trial in (held, free)] == [False, True]
    finally:
        await other.close()
    await back_fill.go_on(driver)
    assert await is_in_rows(db, held), "it is tried again"


class Interrupted:
    """An asyncpg connection on which something happens before the rows are given to their trials."""

    def __init__(self, driver: Any, happens: Callable[[], Awaitable[None]]) -> None:
        self._driver = driver
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    async def fetch(self, statement: str, *arguments: Any) -> Any:
        if statement == staging.LOCK_UNCHANGED:
            await self._happens()
        return await self._driver.fetch(statement, *arguments)


@pytest.mark.parametrize("is_killed", [True, False])
async def test_rows_that_were_not_given_to_a_trial_are_deleted(
    db: Database, driver: asyncpg.Connection, database_url: str, is_killed: bool
) -> None:
    trial = await trained(db, driver)
    await delete_all_garbage(driver)
    other = await asyncpg.connect(asyncpg_url(database_url))

    async def happens() -> None:
        if is_killed:
            other.terminate()
        else:
            await store(driver, [a_report(trial, 9)])

    moving = staging.move_into_rows(Interrupted(other, happens), [trial])
    if is_killed:
        with pytest.raises((asyncpg.InterfaceError, OSError)):
            await moving
    else:
        moved = await moving
        assert (moved.trial_ids, moved.changed) == ([], [trial])
        await other.close()
    assert not await is_in_rows(db, trial)
    (left,) = await rows_of(db, metric_garbage)
    assert len(await rows_of(db, metric_summaries, summary_id=left.summary_id)) == 1
    await delete_all_garbage(driver)
    assert await rows_of(db, metric_summaries, summary_id=left.summary_id) == []
    assert (await staging.move_into_rows(driver, [trial])).trial_ids == [trial]
    (group,) = await rows_of(db, metric_groups, trial_id=trial)
    (name,) = await rows_of(db, metric_summaries, summary_id=group.summary_id)
    assert name.last_step == group.folded_step == (3 if is_killed else 9)
    assert await rows_of(db, metric_garbage) == []


async def delete_all_garbage(driver: Any) -> None:
    while await delete_garbage(driver):
        pass


async def test_import_is_waited_for(db: Database, driver: asyncpg.Connection, database_url: str) -> None:
    """It brings the reports of a trial after the trial."""
    trial = await trained(db, driver)
    back_fill = BackFill(ALL_AT_ONCE)
    settings = {"application_name": IMPORT_APPLICATION}
    importing = await asyncpg.connect(asyncpg_url(database_url), server_settings=settings)
    try:
        await importing.execute("INSERT INTO imports (source) VALUES ('other')")
        await back_fill.go_on(driver)
        assert not await is_in_rows(db, trial)
        await importing.execute("UPDATE imports SET finished_at = now()")
        await back_fill.go_on(driver)
        assert not await is_in_rows(db, trial), "it is repeated"
    finally:
        await importing.close()

    async def is_moved() -> bool:
        await back_fill.go_on(driver)
        return await is_in_rows(db, trial)

    await eventually(is_moved)


def test_summaries_that_are_moved_together_are_bounded() -> None:
    assert batches([]) == []
    assert batches([(1, 10), (2, 10)]) == [[1, 2]]
    assert [len(batch) for batch in batches((n, 1) for n in range(250))] == [100, 100, 50]
    large = 10**9
    assert batches([(1, 1), (2, large), (3, 1), (4, 1)]) == [[1], [2], [3, 4]]
