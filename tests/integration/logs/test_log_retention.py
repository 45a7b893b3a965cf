"""Lines go when their time is over, and no line goes before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from sqlalchemy import insert, text

from libs.bus import Bus, BusSettings
from libs.db.engine import Database
from libs.db.tables.trials import trial_tasks
from libs.events import subjects
from libs.events.logs import LogBatch, LogLine
from libs.loglines.partitions import day_partition, day_partition_ddl
from services.logs.log_retention import LogRetention
from services.logs.settings import RetentionSettings
from services.logs.writing.store import store
from tests.builders import insert_experiment, insert_trial
from tests.harness import FakeClock
from tests.integration.logs.conftest import Service, Task, lines_of, logs_settings, new_task, pool_of

DAY_0 = datetime(2020, 1, 10, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
async def empty(db: Database) -> AsyncIterator[None]:
    """The tests of this module share a database, and retention looks at all of it."""
    yield
    async with db.transaction() as connection:
        for table in await partitions(db):
            await connection.execute(text(f"DROP TABLE {table}"))
        await connection.execute(
            text("TRUNCATE task_logs, log_streams, log_parked, tasks, trials, experiments CASCADE")
        )


async def partitions(db: Database) -> list[str]:
    async with db.read() as connection:
        found = await connection.scalars(
            text("SELECT relname FROM pg_class WHERE relname ~ '^task_logs_d[0-9]{8}$' ORDER BY 1")
        )
        return list(found)


def retention(db: Database, clock: FakeClock, days: int | None = None) -> LogRetention:
    return LogRetention(db=pool_of(db), clock=clock, settings=RetentionSettings(default_days=days, partitions_ahead=2))


async def written(
    db: Database, day: datetime, *, days: int | None = None, ended: bool = True, trial: bool = True, count: int = 3
) -> Task:
    """A task that wrote ``count`` lines at ``day`` and ended then; ``days`` is the retention of its experiment."""
    task = await new_task(db, ended_at=day if ended else None)
    async with db.transaction() as connection:
        if trial:
            row = {"state": "COMPLETED", "start_time": day}
            experiment = await insert_experiment(connection, **row)
            trial_id = await insert_trial(connection, experiment_id=experiment, log_retention_days=days, **row)
            await connection.execute(insert(trial_tasks).values(trial_id=trial_id, position=0, task_id=task.task))
        await connection.execute(text(day_partition_ddl(day.date())))
    batch = LogBatch(
        task=task.task, stream=f"{task.allocation}/out", lines=tuple(LogLine(seq, 0, b"x\n") for seq in range(count))
    )
    await store(pool_of(db), subjects.log_shard(task.task), [batch], parked_bytes=0)
    async with db.transaction() as connection:
        for statement in (
            "UPDATE task_logs SET ingested_at = :day WHERE task_id = :task",
            "UPDATE log_streams SET opened_at = :day, written_at = :day WHERE task_id = :task",
        ):
            await connection.execute(text(statement), {"day": day, "task": task.task})
    return task


async def left(db: Database, *tasks: Task) -> list[bool]:
    return [bool(await lines_of(db, task)) for task in tasks]


async def test_the_worked_example_of_the_reference(db: Database) -> None:
    clock = FakeClock(DAY_0 + timedelta(days=100))
    tasks = [await written(db, DAY_0, days=days) for days in (None, 1000, -1)]
    assert await retention(db, clock, 100).remove_expired() == 3
    assert await left(db, *tasks) == [False, True, True]
    clock.advance(timedelta(days=899))
    assert await retention(db, clock, 999).remove_expired() == 0
    clock.advance(timedelta(days=1))
    assert await retention(db, clock, 999).remove_expired() == 3
    assert await left(db, *tasks) == [False, False, True]
    clock.advance(timedelta(days=36500))
    assert await retention(db, clock, 0).remove_expired() == 0
    assert await left(db, *tasks) == [False, False, True]


@pytest.mark.parametrize("days", [None, -1])
async def test_lines_are_kept_for_ever_unless_somebody_says_otherwise(db: Database, days: int | None) -> None:
    task = await written(db, DAY_0)
    assert await retention(db, FakeClock(), days).remove_expired() == 0
    assert await left(db, task) == [True]


async def test_running_tasks_keep_their_lines_and_other_tasks_than_trials_do_not(db: Database) -> None:
    running, command = await written(db, DAY_0, days=0, ended=False), await written(db, DAY_0, trial=False)
    assert await retention(db, FakeClock(), 5).remove_expired() == 3
    assert await left(db, running, command) == [True, False]


async def test_lines_of_deleted_tasks_go(db: Database) -> None:
    task = await written(db, DAY_0, days=-1)
    async with db.transaction() as connection:
        await connection.execute(text("DELETE FROM tasks WHERE task_id = :task"), {"task": task.task})
    assert await retention(db, FakeClock()).remove_expired() == 3
    assert await left(db, task) == [False]


async def test_a_day_nobody_needs_is_dropped_whole(db: Database) -> None:
    clock = FakeClock(DAY_0 + timedelta(days=50))
    kept = await written(db, DAY_0 + timedelta(days=1), days=-1)
    gone = [await written(db, DAY_0), await written(db, DAY_0 + timedelta(days=1))]
    assert await retention(db, clock, 10).remove_expired() == 6
    assert await partitions(db) == [day_partition(date(2020, 1, 11))]
    assert await left(db, kept, *gone) == [True, False, False]
    async with db.read() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM log_streams")) == 1


async def test_many_lines_go_in_small_steps(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.logs.log_retention.ROWS_AT_ONCE", 4)
    task, neighbour = await written(db, DAY_0, days=1, count=13), await written(db, DAY_0, days=-1)
    assert await retention(db, FakeClock()).remove_expired() == 13
    assert await left(db, task, neighbour) == [False, True]


async def test_replicas_that_clean_up_at_once_remove_each_line_once(db: Database) -> None:
    clock = FakeClock()
    for offset in range(4):
        await written(db, DAY_0 + timedelta(days=offset), days=1)
    removed = await asyncio.gather(*(retention(db, clock).remove_expired() for _ in range(3)))
    assert sum(removed) == 12
    assert await partitions(db) == []


async def test_partitions_are_made_ahead_by_any_number_of_replicas(db: Database) -> None:
    clock = FakeClock(datetime(2031, 12, 30, 23, 59, tzinfo=UTC))
    await asyncio.gather(*(retention(db, clock).make_partitions() for _ in range(3)))
    expected = [day_partition(date(2031, 12, 30)), day_partition(date(2031, 12, 31)), day_partition(date(2032, 1, 1))]
    assert await partitions(db) == expected


async def test_lines_in_the_default_partition_do_not_stop_the_service(db: Database) -> None:
    task = await new_task(db)
    batch = LogBatch(task=task.task, stream=task.task, lines=(LogLine(0, 0, b"x\n"),))
    await store(pool_of(db), subjects.log_shard(task.task), [batch], parked_bytes=0)
    async with db.read() as connection:
        stored_at = text("SELECT ingested_at FROM task_logs WHERE task_id = :task")
        today = (await connection.scalars(stored_at, {"task": task.task})).one()
    await retention(db, FakeClock(today)).make_partitions()
    assert day_partition(today.date()) not in await partitions(db)
    assert len(await partitions(db)) == 2
    assert await left(db, task) == [True]


async def test_cleanup_can_be_asked_for(db: Database, database_url: str, bus: Bus, bus_settings: BusSettings) -> None:
    task = await written(db, DAY_0, days=1)
    async with Service(logs_settings(database_url, bus_settings)):
        answer = await bus.request(subjects.rpc("logs", "cleanup"), b"", timeout_s=10)
        default = await bus.request(subjects.rpc("logs", "retention"), b"", timeout_s=10)
    assert msgspec.json.decode(default) == {"days": -1}
    removed = msgspec.json.decode(answer)["removed"]
    assert removed in (0, 3)  # the service may have been faster
    assert await left(db, task) == [False]
