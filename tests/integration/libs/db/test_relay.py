"""The outbox on its way to the bus: in order, once, and never held up for good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from sqlalchemy import text

from libs import telemetry
from libs.bus import Bus, CoreMessage
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.outbox import LARGEST_TRIAL_EVENT, announce, enqueue, event_message, message
from libs.db.relay import relay_outbox
from libs.errors import Unavailable
from libs.events.changes import TrialChanged
from libs.events.subjects import event, events_of
from libs.run_until_first_exits import end
from tests.harness import NatsServer, eventually


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=3)) as connected:
        yield connected


@pytest.fixture
async def heard(bus: Bus) -> AsyncIterator[list[bytes]]:
    """What is published about trials, in order."""
    found: list[bytes] = []

    async def hear(message: CoreMessage) -> None:
        found.append(message.data)

    async with bus.subscribe(events_of("trial"), hear):
        yield found


async def write(db: Database, *rows: dict[str, object]) -> None:
    async with db.transaction() as connection:
        await enqueue(connection, *rows)


async def is_empty(db: Database) -> bool:
    async with db.read() as connection:
        return not (await connection.execute(text("SELECT count(*) FROM outbox"))).scalar_one()


async def test_order_is_that_of_the_outbox(db: Database, bus: Bus, heard: list[bytes]) -> None:
    # A few subjects, so that many are sent at once, and many have to wait for an earlier one on theirs.
    rows = [message(event("trial", number % 7 + number // 400, "state"), b"%d" % number) for number in range(1200)]
    await write(db, *rows)
    relay = asyncio.ensure_future(relay_outbox(db, bus))
    await eventually(lambda: len(heard) >= 1200)
    assert heard == [b"%d" % number for number in range(1200)]
    await eventually(lambda: is_empty(db))
    await end(relay)


async def test_message_that_the_bus_can_never_take_holds_nobody_up(db: Database, bus: Bus, heard: list[bytes]) -> None:
    dropped = telemetry.value("resolute_outbox_dropped_total")
    subject = event("trial", 1, "state")
    await write(db, message(subject, b"before"), message(subject, b"x" * 9_000_000), message(subject, b"after"))
    relay = asyncio.ensure_future(relay_outbox(db, bus))
    await eventually(lambda: heard == [b"before", b"after"])
    await eventually(lambda: is_empty(db))
    await end(relay)
    assert telemetry.value("resolute_outbox_dropped_total") == dropped + 1


async def test_relays_that_are_cut_off_lose_nothing_and_keep_the_order(
    db: Database, bus: Bus, heard: list[bytes]
) -> None:
    total = 3000
    await write(db, *(message(event("trial", number % 50, "state"), b"%d" % number) for number in range(total)))
    cuts = 0
    while not await is_empty(db):
        relay = asyncio.ensure_future(relay_outbox(db, bus))
        await asyncio.sleep(0.03 + cuts * 0.01)
        await end(relay)
        cuts += 1
    assert cuts > 1
    await eventually(lambda: b"%d" % (total - 1) in heard)
    first = list(dict.fromkeys(heard))  # a notification may come twice; streams drop the copies
    assert first == [b"%d" % number for number in range(total)]


async def test_relay_gets_over_a_killed_bus(
    db: Database, bus: Bus, heard: list[bytes], nats_server: NatsServer
) -> None:
    relay = asyncio.ensure_future(relay_outbox(db, bus))
    rows = [message(event("trial", number, "state"), b"%d" % number) for number in range(500)]
    await write(db, *rows)
    nats_server.restart()
    await eventually(lambda: is_empty(db))
    await write(db, message(event("trial", 1, "state"), b"last"))
    await eventually(lambda: b"last" in heard)
    await end(relay)


class DeafBus:
    """Takes no message."""

    async def publish(self, subject: str, payload: bytes, **_: object) -> object:
        raise Unavailable("the bus does not answer")

    async def publish_ahead(self, messages: object) -> int:
        raise Unavailable("the bus does not answer")

    def fits(self, message: object) -> bool:
        return True


async def test_the_time_of_the_oldest_message_is_shown_until_the_bus_has_it(db: Database, bus: Bus) -> None:
    await write(db, message(event("trial", 1, "state"), b"1"))
    async with db.read() as connection:
        written = (await connection.execute(text("SELECT created_at FROM outbox"))).scalar_one().timestamp()
    relay = asyncio.ensure_future(relay_outbox(db, DeafBus()))
    await eventually(lambda: telemetry.value("resolute_outbox_oldest_timestamp_seconds") == written)
    await end(relay)
    assert telemetry.value("resolute_outbox_relaying") == 0
    relay = asyncio.ensure_future(relay_outbox(db, bus))
    await eventually(lambda: telemetry.value("resolute_outbox_oldest_timestamp_seconds") == 0)
    assert telemetry.value("resolute_outbox_relaying") == 1
    await end(relay)


async def test_events_of_trials_stay_small(db: Database, bus: Bus, heard: list[bytes]) -> None:
    usual = TrialChanged(trial_id=1, experiment_id=1, what="created", hparams={"lr": 0.1})
    large = TrialChanged(trial_id=2, experiment_id=1, what="created", hparams={"x": "y" * LARGEST_TRIAL_EVENT})
    assert len(event_message(large)["payload"]) < 1000
    async with db.transaction() as connection:
        await announce(connection, usual, large)
    relay = asyncio.ensure_future(relay_outbox(db, bus))
    await eventually(lambda: len(heard) == 2)
    await end(relay)
    assert [msgspec.json.decode(data)["hparams"] for data in heard] == [{"lr": 0.1}, None]
