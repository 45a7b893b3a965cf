"""Deliveries of webhooks per second against posting the same with a bare client; and beside a receiver that hangs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

import aiohttp
import asyncpg
import msgspec
import uvloop

from libs.webhooks.events import TriggerType, WebhookEvent
from services.scheduler.settings import WebhookSettings
from tests.bench.result import Result
from tests.bench.system import BenchSystem, running_system

EVENTS: Final = 1000
ROUNDS: Final = 3
GOAL: Final = 0.5
GOAL_BESIDE: Final = 0.9
_GIVE_UP_S: Final = 120
_CLUSTER: Final = "webhooks: {signing_key: bench, allowed_networks: [127.0.0.0/8]}\n"


def measure(_: BenchSystem) -> list[Result]:
    """In a system of its own, which may send to this machine, and which no running loop can start."""
    with running_system(cluster=_CLUSTER) as system, _receiver() as url:
        return uvloop.run(_measure(system.database_url, url))


async def _measure(database_url: str, url: str) -> list[Result]:
    """The best of some rounds each, in turns."""
    database = await asyncpg.connect(database_url)
    async with aiohttp.ClientSession() as client:
        bare, alone, beside = [], [], []
        hook = await _add(database, f"{url}/hook")
        for _round in range(ROUNDS):
            bare.append(await _rate(client, url, lambda: _post(client, f"{url}/hook")))
            alone.append(await _rate(client, url, lambda: _enqueue(database, hook)))
        hanging = await _add(database, f"{url}/hang")
        for _round in range(ROUNDS):
            await _enqueue(database, hanging)
            beside.append(await _rate(client, url, lambda: _enqueue(database, hook)))
    await database.close()
    return [
        Result(
            name=f"{EVENTS:,} deliveries against a bare client",
            value=max(alone),
            unit="events/s",
            baseline=max(bare),
            goal=GOAL,
            better="higher",
        ),
        Result(
            name="the same beside a receiver that hangs",
            value=max(beside),
            unit="events/s",
            baseline=max(alone),
            goal=GOAL_BESIDE,
            better="higher",
        ),
    ]


@contextmanager
def _receiver() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.bench.delivering.server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


async def _rate(client: aiohttp.ClientSession, url: str, begin: Callable[[], Awaitable[None]]) -> float:
    """Events per second between the first and the last that came; when it began to look does not count."""
    await begin()
    async with asyncio.timeout(_GIVE_UP_S):
        while True:
            async with client.get(f"{url}/seen", params={"most": EVENTS}) as answer:
                seen = await answer.json()
            if seen["count"] >= EVENTS:
                return float((EVENTS - 1) / seen["seconds"])
            await asyncio.sleep(0.1)


def _event() -> WebhookEvent:
    return WebhookEvent(event_id=str(uuid4()), event_type=TriggerType.CUSTOM, timestamp=1_700_000_000, test=True)


async def _post(client: aiohttp.ClientSession, url: str) -> None:
    """With as many connections as a receiver is given."""
    bodies = iter([msgspec.json.encode(_event()) for _ in range(EVENTS)])

    async def work() -> None:
        for body in bodies:
            async with client.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
                await answer.read()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WebhookSettings().connections):
            tasks.create_task(work())


async def _add(database: Any, url: str) -> int:
    statement = "INSERT INTO webhooks (name, url, webhook_type) VALUES ($1, $1, 'DEFAULT') RETURNING id"
    return int(await database.fetchval(statement, url))


async def _enqueue(database: Any, webhook: int) -> None:
    rows = [
        (webhook, event.event_id, msgspec.json.encode(event).decode()) for event in (_event() for _ in range(EVENTS))
    ]
    statement = "INSERT INTO webhook_deliveries (webhook_id, event_id, event) VALUES ($1, $2, $3::jsonb)"
    async with database.transaction():  # they are there all at once, as those of one message are
        await database.executemany(statement, rows)
