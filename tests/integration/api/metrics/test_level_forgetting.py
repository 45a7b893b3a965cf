"""Whatever changes reports that are in levels forgets these, also while somebody makes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

import asyncpg
import pytest
from sqlalchemy import delete, update

from libs.db.connecting.settings import FORMER_APPLICATION, asyncpg_url
from libs.db.engine import Database, driver_connection
from libs.db.levels import deletion
from libs.db.tables.metrics import metric_chunks, metric_levels
from libs.db.tables.trials import trials
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.trials.run_actions import for_each
from services.api.actions.trials.run_deletion import deletion_at
from services.api.metrics.locked_path import store_locked
from services.api.metrics.report import MetricReport
from services.api.queries.charts.levels.building import Sealed, add_chunks, seal
from services.api.queries.charts.time_series.kept_points import KeptPoints
from services.api.wire.trials.run_actions import RunsRequest
from services.scheduler.deletion.many_rows import delete_metrics
from tests.integration.api.metrics.former_writer import FormerWriter
from tests.integration.api.metrics.level_reading import SMALL, check_levels, extend_levels, pack
from tests.integration.api.metrics.reference import Report
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.tasks.service import new_run, rows_of

_KEPT: WeakKeyDictionary[Database, KeptPoints] = WeakKeyDictionary()
WAITING = "SELECT count(*) FROM pg_locks WHERE pid = $1 AND NOT granted"


@pytest.fixture(params=["column", "rows"])
def to_rows(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "rows")


async def store(db: Database, *reports: MetricReport, to_rows: bool = False) -> None:
    async with db.read() as connection:
        driver = await driver_connection(connection)
        for report in reports:
            async with driver.transaction():
                outcome = await store_locked(driver, [report], with_experiments=True, to_rows=to_rows)
            assert outcome.errors == [None]


async def packed(
    db: Database, *, to_rows: bool, steps: Sequence[int] = range(0, 120, 10), groups: Sequence[str] = ("training",)
) -> int:
    """A trial with three chunks of each group."""
    trial = (await new_run(db)).trial
    for group in groups:
        await store(db, *(a_report(trial, step, group=group) for step in steps), to_rows=to_rows)
    async with db.read() as connection:
        await pack(await driver_connection(connection), trial)
    assert await chunks_of(db, trial) == len(groups) * len(steps) // SMALL.chunk
    return trial


async def chunks_of(db: Database, trial: int) -> int:
    """How many chunks there are, all of which say what the reports say, as does what was chosen of them before."""
    async with db.transaction() as connection:
        return await check_levels(connection, trial, _KEPT.setdefault(db, KeptPoints()))


@asynccontextmanager
async def session(url: str, name: str = "test") -> AsyncIterator[Any]:
    connection = await asyncpg.connect(asyncpg_url(url), server_settings={"application_name": name})
    try:
        yield connection
    finally:
        connection.terminate()


async def test_report_before_others(db: Database, to_rows: bool) -> None:
    trial = await packed(db, to_rows=to_rows)
    await store(db, a_report(trial, 45, avg={"loss": -5.0}), to_rows=to_rows)
    assert await chunks_of(db, trial) == 1
    await store(db, a_report(trial, 120), to_rows=to_rows)
    async with db.read() as connection:
        await pack(await driver_connection(connection), trial)
    assert await chunks_of(db, trial) == 3


async def test_report_beyond_all_others_forgets_nothing(db: Database, to_rows: bool) -> None:
    trial = await packed(db, to_rows=to_rows)
    await store(db, a_report(trial, 120, avg={"loss": -5.0}), to_rows=to_rows)
    assert await chunks_of(db, trial) == 3


async def test_step_that_is_reported_in_parts(db: Database, to_rows: bool) -> None:
    trial = await packed(db, to_rows=to_rows)
    await store(db, a_report(trial, 115, avg={"other": 1}), to_rows=to_rows)
    await store(db, a_report(trial, 80, avg={"accuracy": 1}), to_rows=to_rows)
    assert await chunks_of(db, trial) == 2


async def test_reports_that_are_taken_back(db: Database, to_rows: bool) -> None:
    groups = ("training", "custom", "validation")
    trial = await packed(db, to_rows=to_rows, groups=groups)
    async with db.transaction() as connection:
        await connection.execute(update(trials).where(trials.c.id == trial).values(run_id=2))
    await store(db, a_report(trial, 55, run=2, avg={"loss": -1.0}), to_rows=to_rows)
    assert await chunks_of(db, trial) == len(groups)
    # Of another group, behind what is left of it, but before the report that took back.
    await store(db, a_report(trial, 52, run=2, group="custom", avg={"loss": -2.0}), to_rows=to_rows)
    assert await chunks_of(db, trial) == len(groups)
    for step in range(60, 150, 10):
        for group in groups:
            await store(db, a_report(trial, step, run=2, group=group, avg={"loss": -step}), to_rows=to_rows)
    async with db.read() as connection:
        await pack(await driver_connection(connection), trial)
    assert await chunks_of(db, trial) == 4 + 4 + 3


async def test_release_before_forgets_what_it_may_have_changed(db: Database, database_url: str) -> None:
    trial = await packed(db, to_rows=False)
    time = datetime(2026, 1, 2, tzinfo=UTC)
    async with session(database_url, FORMER_APPLICATION) as driver:
        former = FormerWriter(driver, trial)
        for step in (120, 130):
            await former.store(Report(run=1, group="training", step=step, time=time, avg={"loss": 1.0}))
        assert former.took_fast_path == 1
        assert await chunks_of(db, trial) == 3
        await former.store(Report(run=1, group="training", step=45, time=time, avg={"loss": -9.0}))
    assert await chunks_of(db, trial) == 0
    async with db.read() as connection:
        await pack(await driver_connection(connection), trial)
    assert await chunks_of(db, trial) == 3


async def test_chunks_of_reports_that_changed_meanwhile_are_not_stored(db: Database, to_rows: bool) -> None:
    trial = await packed(db, to_rows=to_rows)
    async with db.read() as connection:
        driver = await driver_connection(connection)
        await store(db, *(a_report(trial, step) for step in range(120, 160, 10)), to_rows=to_rows)
        sealed = await seal(driver, trial, "training")
        assert sealed is not None
        await store(db, a_report(trial, 145, avg={"loss": -5.0}), to_rows=to_rows)
        assert not await add_chunks(driver, trial, "training", "loss", sealed, shape=SMALL)
    assert await chunks_of(db, trial) == 3


async def test_nothing_is_sealed_or_stored_while_somebody_writes(db: Database, database_url: str) -> None:
    trial = await packed(db, to_rows=False)
    await store(db, *(a_report(trial, step) for step in range(120, 160, 10)))
    async with session(database_url) as writer, session(database_url) as maker:
        sealed = await seal(maker, trial, "training")
        assert sealed is not None
        writing = writer.transaction()
        await writing.start()
        await store_locked(writer, [a_report(trial, 145, avg={"loss": -5.0})], with_experiments=True)
        assert await seal(maker, trial, "training") is None
        assert not await extend_levels(maker, trial, "training", "loss", shape=SMALL)
        assert not await add_chunks(maker, trial, "training", "loss", sealed, shape=SMALL), "and nobody is waited for"
        assert await chunks_of(db, trial) == 3
        await writing.commit()
    assert await chunks_of(db, trial) == 3


async def test_chunk_that_is_just_being_stored_is_forgotten(db: Database, database_url: str) -> None:
    trial = await packed(db, to_rows=False)
    await store(db, *(a_report(trial, step) for step in range(120, 160, 10)))
    async with session(database_url) as writer, session(database_url) as maker:
        sealed = await seal(maker, trial, "training")
        assert sealed is not None
        storing = maker.transaction()
        await storing.start()
        assert await add_chunks(maker, trial, "training", "loss", sealed, shape=SMALL)
        async with writer.transaction():
            late = [a_report(trial, 145, avg={"loss": -5.0})]
            writing = asyncio.create_task(store_locked(writer, late, with_experiments=True))
            while not await maker.fetchval(WAITING, writer.get_server_pid()):
                assert not writing.done()
            await storing.commit()
            await writing
    assert await chunks_of(db, trial) == 3


async def test_two_make_the_same_levels(db: Database, database_url: str) -> None:
    trial = (await new_run(db)).trial
    await store(db, *(a_report(trial, step) for step in range(40)))
    async with session(database_url) as one, session(database_url) as other:
        sealed = [await seal(each, trial, "training") for each in (one, other)]
        made = [
            add_chunks(each, trial, "training", "loss", it, shape=SMALL)
            for each, it in zip((one, other), sealed, strict=True)
            if it is not None
        ]
        assert await asyncio.gather(*made) == [True, True]
    assert await chunks_of(db, trial) == 10


async def test_levels_of_deleted_metrics_go_from_their_ends(
    db: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few at a time, so that whoever reads a series meanwhile finds what it begins with."""
    monkeypatch.setattr(deletion, "CHUNKS_AT_ONCE", 2)
    deleted, other = [await packed(db, to_rows=False, groups=("training", "custom")) for _ in range(2)]
    async with session(database_url) as holder:
        generations = await holder.fetch(
            "SELECT generation FROM metric_levels WHERE trial_id = $1 AND metric_group = 'training'", deleted
        )
        held = holder.transaction()
        await held.start()
        # What is behind the first chunks is gone, while who deletes waits for these.
        await holder.execute("SELECT FROM metric_chunks WHERE trial_id = $1 AND chunk_no = 0 FOR UPDATE", deleted)
        deleting = asyncio.create_task(delete_metrics(db, [deleted]))
        while await holder.fetchval("SELECT count(*) FROM metric_chunks WHERE trial_id = $1", deleted) > 2:
            assert not deleting.done()
        assert await chunks_of(db, deleted) == 2
        sealed = Sealed(*generations[0], step=110)
        assert not await add_chunks(holder, deleted, "training", "loss", sealed, shape=SMALL), "of before"
        await held.rollback()
        await deleting
    assert await rows_of(db, metric_levels, trial_id=deleted) == []
    assert await rows_of(db, metric_chunks, trial_id=deleted) == []
    assert await chunks_of(db, other) == 6


async def test_few_trials_at_a_time_lose_their_levels(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others keep their generation meanwhile: each part would give all that are left another one."""
    monkeypatch.setattr(deletion, "CHUNKS_AT_ONCE", 2)
    monkeypatch.setattr(deletion, "TRIALS_AT_ONCE", 2)
    deleted = [await packed(db, to_rows=False) for _ in range(5)]
    before = await generations_of(db, deleted)
    touched = []
    is_left = True
    while is_left:
        async with db.transaction() as connection:
            is_left = await deletion.delete_some_levels(connection, deleted)
        after = await generations_of(db, deleted)
        touched.append([trial for trial in before if after.get(trial) != before[trial]])
        before = after
    assert max(len(trials) for trials in touched) == 2
    assert {trial for trials in touched for trial in trials} == set(deleted)
    assert before == {}


async def generations_of(db: Database, trial_ids: Sequence[int]) -> dict[int, int]:
    rows = [row for trial in trial_ids for row in await rows_of(db, metric_levels, trial_id=trial)]
    return {row.trial_id: row.generation for row in rows}


async def test_levels_of_a_run_that_is_deleted_go_before_it(
    db: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In transactions of their own: with the row of the trial they would all be deleted in one."""
    monkeypatch.setattr(deletion, "CHUNKS_AT_ONCE", 2)
    deleted = await packed(db, to_rows=False, groups=("training", "custom"))
    async with db.transaction() as connection:
        await connection.execute(update(trials).where(trials.c.id == deleted).values(state="COMPLETED"))
    rights = UserRights(Principal(user_id=UserId(1), username="admin", admin=True))
    doing = for_each(
        db,
        RunsRequest(run_ids=[deleted]),
        deletion_at(datetime(2026, 1, 2, tzinfo=UTC)),
        rights=rights,
        right=Action.DELETE_RUN,
    )
    async with session(database_url) as holder:
        async with holder.transaction():
            await holder.execute("SELECT FROM metric_chunks WHERE trial_id = $1 AND chunk_no = 0 FOR UPDATE", deleted)
            deleting = asyncio.create_task(doing)
            while await holder.fetchval("SELECT count(*) FROM metric_chunks WHERE trial_id = $1", deleted) > 2:
                assert not deleting.done()
            assert await chunks_of(db, deleted) == 2, "it is there with all that is left"
        (result,) = await deleting
    assert result.error == ""
    assert await rows_of(db, trials, id=deleted) == []
    assert await rows_of(db, metric_levels, trial_id=deleted) == []


async def test_levels_go_with_their_reports_and_trials(db: Database) -> None:
    of_metrics, of_trial = [await packed(db, to_rows=False) for _ in range(2)]
    await delete_metrics(db, [of_metrics])
    async with db.transaction() as connection:
        await connection.execute(delete(trials).where(trials.c.id == of_trial))
    for trial in (of_metrics, of_trial):
        assert await rows_of(db, metric_levels, trial_id=trial) == []
        assert await rows_of(db, metric_chunks, trial_id=trial) == []
