"""Lines that webhooks are told of, once for a task, together with the line (docs/reference/logs.md 8)."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, insert, select

from libs.db.engine import Database
from libs.db.tables.trials import trial_tasks
from libs.db.tables.webhooks import webhook_deliveries, webhook_triggers, webhooks
from libs.events import subjects
from libs.events.logs import LogBatch, LogLine
from libs.ids import new_uuid
from services.logs.writing.line_webhooks import LogWebhooks
from services.logs.writing.store import store
from tests.builders import insert_experiment, insert_trial
from tests.integration.logs.conftest import Task, pool_of


class Lines:
    """What a task writes, with the webhooks of one writer."""

    def __init__(self, db: Database, task: Task) -> None:
        self._db = db
        self._task = task
        self.webhooks = LogWebhooks()
        self._seq = 0

    async def say(self, *logs: bytes) -> None:
        lines = tuple(
            LogLine(self._seq + number, 0, log, agent_id="node-1", allocation_id=self._task.allocation)
            for number, log in enumerate(logs)
        )
        self._seq += len(logs)
        stream = f"{self._task.allocation}/pod/0/stdout"
        batch = LogBatch(task=self._task.task, stream=stream, lines=lines, contiguous=True)
        await store(pool_of(self._db), subjects.log_shard(batch.task), (batch,), parked_bytes=0, webhooks=self.webhooks)


async def add_webhook(db: Database, *patterns: str, **columns: Any) -> int:
    async with db.transaction() as connection:
        row = {"name": new_uuid(), "url": "https://example.com", "webhook_type": "DEFAULT", **columns}
        made = insert(webhooks).values(row).returning(webhooks.c.id)
        ident: int = (await connection.execute(made)).scalar_one()
        for pattern in patterns:
            trigger = {"webhook_id": ident, "trigger_type": "TASK_LOG", "condition": {"regex": pattern}}
            await connection.execute(insert(webhook_triggers).values(trigger))
    return ident


async def told(db: Database, webhook: int) -> list[Any]:
    async with db.read() as connection:
        query = select(webhook_deliveries.c.event).where(webhook_deliveries.c.webhook_id == webhook)
        return list((await connection.execute(query.order_by(webhook_deliveries.c.id))).scalars())


@pytest.fixture(autouse=True)
async def _no_webhooks(db: Database) -> None:
    async with db.transaction() as connection:
        await connection.execute(delete(webhooks))


async def make_trial(db: Database, task: Task, **integration: Any) -> int:
    async with db.transaction() as connection:
        experiment = await insert_experiment(connection, config={"integrations": {"webhooks": integration}})
        trial = await insert_trial(connection, experiment_id=experiment)
        await connection.execute(insert(trial_tasks).values(trial_id=trial, task_id=task.task, position=0))
    return trial


async def test_first_line_that_matches_is_told_once(db: Database, task: Task) -> None:
    trial = await make_trial(db, task)
    webhook = await add_webhook(db, "CUDA out of", "never")
    lines = Lines(db, task)
    await lines.say(b"fine\n")
    assert await told(db, webhook) == []
    await lines.say(b"fine\n", b"CUDA out of memory \0\n", b"CUDA out of luck\n")
    await lines.say(b"CUDA out of memory\n")
    await Lines(db, task).say(b"CUDA out of memory\n")
    [event] = await told(db, webhook)
    assert event["event_type"] == "TASK_LOG"
    assert event["condition"] == {"regex": "CUDA out of"}
    line = event["task_log"]
    assert (line["task_id"], line["node_name"], line["trial_id"]) == (task.task, "node-1", trial)
    assert line["triggering_log"].startswith("CUDA out of memory")
    async with db.transaction() as connection:
        await connection.execute(delete(webhook_deliveries))  # it was sent
    await lines.say(b"CUDA out of memory\n")
    assert await told(db, webhook) == []


async def test_configuration_that_is_printed_matches_nothing(db: Database, task: Task) -> None:
    webhook = await add_webhook(db, "oops")
    await Lines(db, task).say(b'{"log_policies": [{"pattern": "oops"}]}\n')
    assert await told(db, webhook) == []


async def test_webhook_that_is_made_meanwhile_is_told_of_the_next_line(db: Database, task: Task) -> None:
    lines = Lines(db, task)
    await lines.say(b"oops\n")
    webhook = await add_webhook(db, "oops")
    await lines.say(b"oops\n")
    assert len(await told(db, webhook)) == 1


@pytest.mark.parametrize(
    ("integration", "hearing"),
    [
        ({}, {"all"}),
        ({"webhook_name": ["named"]}, {"all", "named"}),
        ({"exclude": True, "webhook_name": ["named"]}, set()),
    ],
)
async def test_experiment_says_which_webhooks_hear(
    db: Database, task: Task, integration: dict[str, Any], hearing: set[str]
) -> None:
    await make_trial(db, task, **integration)
    known = {
        "all": await add_webhook(db, "oops"),
        "named": await add_webhook(db, "oops", name="named", mode="SPECIFIC"),
    }
    await Lines(db, task).say(b"oops\n")
    assert {name for name, webhook in known.items() if await told(db, webhook)} == hearing
