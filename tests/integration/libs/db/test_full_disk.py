"""The disk of PostgreSQL is full for a while: its users wait, and know why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.local.servers.postgres import TEST_SETTINGS, PostgresServer
from deploy.operations.doctor.database import check_database
from libs.bus import Bus, CoreMessage
from libs.clock import SystemClock
from libs.db import storage_probe
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.failures import is_connection_failure
from libs.db.migrate import upgrade
from libs.db.outbox import enqueue, message
from libs.db.relay import relay_outbox
from libs.events.subjects import event, events_of
from libs.run_until_first_exits import end
from tests.harness import eventually
from tests.harness.full_disk import SmallDisk, small_disk

SUBJECT = event("trial", 1, "state")
FULL = "does not store: its disk is full"


@pytest.fixture
def disk(server_directory: Path) -> Iterator[SmallDisk]:
    with small_disk(server_directory / uuid4().hex[:8], size_mb=160) as made:
        made.path.chmod(0o755)
        yield made


@pytest.fixture
def settings(disk: SmallDisk) -> Iterator[DatabaseSettings]:
    server = PostgresServer(disk.path / "postgres", settings=TEST_SETTINGS, dies_with_parent=True)
    server.start()
    try:
        yield DatabaseSettings(url=server.url(), pool_size=3)
    finally:
        server.stop()


@pytest.fixture
async def db(settings: DatabaseSettings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    monkeypatch.setattr(storage_probe, "REMEMBERED_S", 0)
    await upgrade(settings.url)
    async with connect_database(settings) as connected:
        yield connected


async def write(db: Database, size_bytes: int) -> None:
    async with db.transaction() as connection:
        await enqueue(connection, message(SUBJECT, bytes(size_bytes)))


async def test_whoever_stores_waits_and_goes_on(
    db: Database, settings: DatabaseSettings, disk: SmallDisk, bus: Bus
) -> None:
    heard: list[bytes] = []

    async def hear(said: CoreMessage) -> None:
        heard.append(said.data)

    async with bus.subscribe(events_of("trial"), hear):
        relay = asyncio.ensure_future(relay_outbox(db, bus))
        await write(db, 1)
        await eventually(lambda: heard == [bytes(1)])
        assert await db.storage_problem() is None
        with disk.filled():
            with pytest.raises(Exception, match="No space left") as failure:
                await write(db, 4_000_000)
            assert is_connection_failure(failure.value)
            assert (await db.problem(), await db.storage_problem()) == (None, FULL)
            found = await check_database(settings, SystemClock())
            assert [each.says for each in found if each.level == "problem"] == [each.says for each in found[1:2]]
            assert "No space left on device" in found[1].says
        assert await db.storage_problem() is None
        await write(db, 2)
        await eventually(lambda: heard == [bytes(1), bytes(2)])
        assert not relay.done()
        await end(relay)
