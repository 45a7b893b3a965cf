"""Lines that match the policies of their trial: what is written, once, together with the line
(docs/reference/logs.md 7.3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from sqlalchemy import insert, select, text

from libs.db.engine import Database
from libs.db.tables.cluster import outbox
from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.events import subjects
from libs.events.logs import LogBatch, LogLine
from services.logs.writing.policy_effects import LogPolicies
from services.logs.writing.store import store
from tests.builders import insert_experiment, insert_trial
from tests.integration.logs.conftest import Task, pool_of, texts_of

POLICIES: list[dict[str, Any]] = [
    {"name": "first", "pattern": "one|both"},
    {"name": "second", "pattern": "two|both"},
    {"name": "turned off"},
    {"pattern": "give up", "action": "cancel_retries"},
    {"name": "bad node", "pattern": "ECC", "action": "exclude_node"},
]


@pytest.fixture
async def trial(db: Database, task: Task) -> int:
    """The id of the trial whose task it is."""
    async with db.transaction() as connection:
        experiment = await insert_experiment(connection, config={"log_policies": POLICIES})
        made = await insert_trial(connection, experiment_id=experiment)
        await connection.execute(insert(trial_tasks).values(trial_id=made, task_id=task.task, position=0))
    return made


@pytest.fixture
async def clean_outbox(db: Database) -> AsyncIterator[None]:
    yield
    async with db.transaction() as connection:
        await connection.execute(text("DELETE FROM outbox"))


class Stream:
    def __init__(self, db: Database, task: Task, **fields: Any) -> None:
        self.db = db
        self.task = task
        self.policies = LogPolicies()
        self._fields = {"agent_id": "node-1", "allocation_id": task.allocation, **fields}
        self._seq = 0

    def batch(self, *logs: bytes) -> LogBatch:
        lines = [LogLine(self._seq + number, 0, log, **self._fields) for number, log in enumerate(logs)]
        self._seq += len(logs)
        return LogBatch(
            task=self.task.task, stream=f"{self.task.allocation}/pod/0/stdout", lines=tuple(lines), contiguous=True
        )

    async def keep(self, batch: LogBatch) -> None:
        shard = subjects.log_shard(self.task.task)
        await store(pool_of(self.db), shard, (batch,), parked_bytes=0, policies=self.policies)

    async def say(self, *logs: bytes) -> None:
        await self.keep(self.batch(*logs))


async def trial_row(db: Database, trial: int) -> tuple[str | None, list[str]]:
    async with db.read() as connection:
        query = select(trials.c.log_policy_matched, trials.c.blocked_nodes).where(trials.c.id == trial)
        row = (await connection.execute(query)).one()
        return row.log_policy_matched, row.blocked_nodes


async def canceled(db: Database, task: Task) -> list[dict[str, str]]:
    async with db.read() as connection:
        query = select(tasks.c.cancel_retries).where(tasks.c.task_id == task.task)
        return list((await connection.execute(query)).scalar_one())


async def said(db: Database, task: Task) -> list[str]:
    """Lines that were added to the log of the task."""
    async with db.read() as connection:
        query = select(outbox.c.payload).where(outbox.c.subject == subjects.logs(task.task)).order_by(outbox.c.id)
        batches = [msgspec.msgpack.decode(data, type=LogBatch) for data in (await connection.execute(query)).scalars()]
        return [line.log.decode() for batch in batches for line in batch.lines]


async def test_the_last_policy_that_matched_is_the_label(db: Database, task: Task, trial: int) -> None:
    stream = Stream(db, task)
    await stream.say(b"nothing\n")
    assert await trial_row(db, trial) == (None, [])
    await stream.say(b"one\n", b"two\n", b"nothing\n")
    assert (await trial_row(db, trial))[0] == "second"
    await stream.say(b"one\n")
    assert (await trial_row(db, trial))[0] == "first"
    await stream.say(b"both\n")
    assert (await trial_row(db, trial))[0] == "second"
    assert await canceled(db, task) == []


async def test_retries_are_canceled_by_the_first_line_that_matches(db: Database, task: Task, trial: int) -> None:
    stream = Stream(db, task)
    first = stream.batch(b"never \x00 give up\n", b"do give up\n")
    await stream.keep(first)
    await stream.keep(first)  # delivered again
    await stream.say(b"give up\n")
    assert await canceled(db, task) == [{"regex": "give up", "log": "never \N{REPLACEMENT CHARACTER} give up"}]
    assert await trial_row(db, trial) == (None, [])


async def test_a_node_is_excluded_once_and_the_log_says_so(
    db: Database, task: Task, trial: int, clean_outbox: None
) -> None:
    stream = Stream(db, task)
    await stream.say(b"ECC 1\n", b"ECC 2\n")
    await stream.say(b"ECC 3\n")
    assert await trial_row(db, trial) == ("bad node", ["node-1"])
    assert await said(db, task) == ["(log 'ECC 1' matched regex ECC) therefore will not schedule on node-1\n"]
    nowhere = Stream(db, task, agent_id=None)
    nowhere._seq = 10
    await nowhere.keep(msgspec.structs.replace(nowhere.batch(b"ECC 4\n"), stream="other", contiguous=False))
    assert (await trial_row(db, trial))[1] == ["node-1"]


async def test_what_services_say_matches_nothing(db: Database, task: Task, trial: int) -> None:
    await Stream(db, task, source="master").say(b"one give up ECC\n")
    assert await trial_row(db, trial) == (None, [])
    assert await canceled(db, task) == []


async def test_tasks_without_a_trial_have_no_policies(db: Database, task: Task) -> None:
    await Stream(db, task).say(b"one give up ECC\n")
    assert await canceled(db, task) == []
    assert await texts_of(db, task) == [b"one give up ECC\n"]
