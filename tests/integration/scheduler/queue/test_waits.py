"""What becomes known of why something waits: the code of the reason, since when, lines of its log, and events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, text

from libs.cluster.config import ClusterConfig, PoolConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.tables.tasks import wait_notes
from libs.events.changes import AllocationChanged
from libs.events.logs import LogBatch
from services.scheduler.plan.decisions import Wait
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.queue.wait_lines import PAUSE, tell_waits
from services.scheduler.queue.wait_notes import note_waits
from tests.harness import eventually
from tests.harness.statements import counted_statements
from tests.integration.scheduler.world import World

QUEUE = "In the queue of default: "
SLOTS = "waiting for slots to become free"
IN_NUMBERS = f"{SLOTS}: needs 8 free slots on one node; 0 of 8 slots are free"


async def test_a_reason_has_a_code_that_stays_while_its_numbers_change(world: World) -> None:
    waiting = await _one_that_waits(world)
    noted = await _note_of(world, waiting["allocation_id"])
    assert (noted["code"], noted["reason"]) == ("no_room", SLOTS)
    assert await _since(world, Wait(waiting["allocation_id"], WaitReason.NO_ROOM, "3 are missing")) == noted["since"]
    assert await _since(world, Wait(waiting["allocation_id"], WaitReason.POOL_QUOTA)) > noted["since"]
    [row] = [row for row in await world.api.allocations() if row["assigned_at"] is None]
    assert row["wait_reason"] == "the quota of the resource pool is used up"


async def test_any_number_of_sentences_is_one_statement(world: World, own_database_url: str) -> None:
    """Those that name what a user has used differ from user to user."""
    idents = await _some_that_wait(world, 3)
    one = [Wait(idents[0], WaitReason.NO_ROOM, "some are missing")]
    several = [
        Wait(idents[0], WaitReason.SLOT_LIMIT, "user a holds 2 of 2 slots"),
        Wait(idents[1], WaitReason.SLOT_LIMIT, "user b holds 3 of 3 slots"),
        Wait(idents[2], WaitReason.POOL_QUOTA),
    ]
    assert await _statements(own_database_url, several) == await _statements(own_database_url, one)
    await _statements(own_database_url, several)
    rows = {row["allocation_id"]: row["wait_reason"] for row in await world.api.allocations()}
    notes = [await _note_of(world, ident) for ident in idents]
    assert [rows[ident] for ident in idents] == [wait.sentence for wait in several]
    assert [(note["code"], note["reason"]) for note in notes] == [(w.reason.code, str(w.reason)) for w in several]


async def test_rows_that_somebody_holds_or_that_wait_no_more_are_left_as_they_are(world: World) -> None:
    idents = await _some_that_wait(world, 3)
    await world.api.sql("UPDATE allocations SET wait_reason = 'before'")
    started = "UPDATE allocations SET assigned_at = now() WHERE allocation_id = :id"
    await world.api.sql(started, id=idents[1])
    async with world.db.transaction() as holding, world.db.transaction() as noting:
        lock = text("SELECT 1 FROM allocations WHERE allocation_id = :id FOR UPDATE")
        await holding.execute(lock, {"id": idents[0]})
        waits = [Wait(ident, WaitReason.POOL_QUOTA) for ident in idents]
        await note_waits(noting, waits, now=datetime.now(UTC))
    rows = {row["allocation_id"]: row["wait_reason"] for row in await world.api.allocations()}
    assert [rows[ident] for ident in idents] == ["before", "before", str(WaitReason.POOL_QUOTA)]


async def test_the_log_of_a_task_says_once_why_it_waits(world: World) -> None:
    waiting = await _one_that_waits(world)
    now: datetime = waiting["requested_at"]
    assert await _tell(world, now + timedelta(seconds=1)) == 0, "it may start at once"
    at = now + timedelta(seconds=10)
    assert await _tell(world, at) == 1
    assert await _tell(world, at + timedelta(hours=1)) == 0, "it is known"
    assert await _lines(world, waiting) == [f"{QUEUE}{IN_NUMBERS}"]
    [event] = await _events(world)
    assert (event.allocation_id, event.reason_code, event.reason) == (waiting["allocation_id"], "no_room", IN_NUMBERS)


async def test_a_log_has_one_line_a_minute_about_it(world: World) -> None:
    waiting = await _one_that_waits(world)
    at = waiting["requested_at"] + timedelta(seconds=10)
    await _tell(world, at)
    await world.api.sql("UPDATE allocations SET wait_reason = 'more' WHERE assigned_at IS NULL")
    assert await _tell(world, at + PAUSE / 2) == 0
    assert await _tell(world, at + PAUSE) == 1
    assert await _lines(world, waiting) == [f"{QUEUE}{IN_NUMBERS}", f"{QUEUE}more"]
    codes = [event.reason_code for event in await _events(world)]
    assert codes == ["no_room", ""], "another release has written the second, and its code is not known"


async def test_who_was_told_nothing_for_the_longest_time_comes_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    idents = await _some_that_wait(world, 2)
    monkeypatch.setattr("services.scheduler.queue.wait_lines._AT_ONCE", 1)
    at = datetime.now(UTC) + timedelta(seconds=10)
    told = []
    for count in range(3):
        await world.api.sql("UPDATE allocations SET wait_reason = :sentence", sentence=f"{count} are missing")
        assert await _tell(world, at + count * PAUSE) == 1
        told.append((await _events(world))[-1].allocation_id)
    assert told == [idents[0], idents[1], idents[0]]


async def test_what_waits_no_more_is_forgotten(world: World) -> None:
    waiting = await _one_that_waits(world)
    at = waiting["requested_at"] + timedelta(seconds=10)
    await _tell(world, at)
    await world.api.sql("UPDATE allocations SET released_at = now() WHERE assigned_at IS NULL")
    await _tell(world, at + PAUSE / 2)
    assert len(await _notes(world)) == 1, "its next attempt must not have another line yet"
    await _tell(world, at + PAUSE)
    assert await _notes(world) == []


async def _one_that_waits(world: World) -> dict[str, Any]:
    async with world.scheduling() as w:
        await w.api.create(resources={"slots_per_trial": 8, "resource_pool": "default"})
        await w.launcher.running()
        await w.api.create(resources={"slots_per_trial": 8, "resource_pool": "default"})
        await eventually(lambda: _waits_for_slots(w))
        [waiting] = [row for row in await w.api.allocations() if row["assigned_at"] is None]
    await _forget_what_was_told(world)
    return dict(waiting)


async def _some_that_wait(world: World, count: int) -> list[str]:
    """As many, in the order of their ids, in a pool without a launcher; nothing else is there."""
    world.cluster = ClusterConfig(resource_pools=(PoolConfig(pool_name="default"), PoolConfig(pool_name="other")))
    async with world.scheduling() as w:
        for _ in range(count):
            await w.api.create(pool="other")
        await eventually(lambda: _count_reasons(w, count))
    await _forget_what_was_told(world)
    return sorted(row["allocation_id"] for row in await world.api.allocations())


async def _count_reasons(w: World, count: int) -> bool:
    return sum(bool(row["wait_reason"]) for row in await w.api.allocations()) == count


async def _forget_what_was_told(world: World) -> None:
    """Where it took long until something waited, its scheduler has told it already."""
    await world.api.sql("UPDATE wait_notes SET told = '', told_at = NULL")
    await world.api.sql("DELETE FROM outbox")


async def _waits_for_slots(w: World) -> bool:
    return any(row["wait_reason"] == IN_NUMBERS for row in await w.api.allocations())


async def _since(world: World, wait: Wait) -> datetime:
    """Since when that is noted to be so, once it has been noted."""
    async with world.db.transaction() as connection:
        await note_waits(connection, [wait], now=datetime.now(UTC))
    since: datetime = (await _note_of(world, wait.allocation))["since"]
    return since


async def _statements(url: str, waits: list[Wait]) -> int:
    """How many it takes to note them."""
    with counted_statements() as sent:
        async with connect_database(DatabaseSettings(url=url)) as db, db.transaction() as connection:
            before = len(sent)
            await note_waits(connection, waits, now=datetime.now(UTC))
            return len(sent) - before


async def _note_of(world: World, allocation: str) -> Any:
    """What has started meanwhile may have one, too."""
    [noted] = [note for note in await _notes(world) if note["allocation_id"] == allocation]
    return noted


async def _notes(world: World) -> list[Any]:
    async with world.db.read() as connection:
        found = await connection.execute(select(wait_notes))
        return list(found.mappings())


async def _tell(world: World, at: datetime) -> int:
    async with world.db.transaction() as connection:
        return await tell_waits(connection, now=at)


async def _lines(world: World, waiting: dict[str, Any]) -> list[str]:
    """Of the log of its task, as they wait to be published."""
    payloads = await world.api.sql("SELECT payload FROM outbox WHERE subject LIKE 'logs.%' ORDER BY id")
    batches = [msgspec.msgpack.decode(payload, type=LogBatch) for payload in payloads]
    assert {batch.allocation for batch in batches} == {waiting["allocation_id"]}
    return [line.log.decode().strip() for batch in batches for line in batch.lines]


async def _events(world: World) -> list[AllocationChanged]:
    payloads = await world.api.sql("SELECT payload FROM outbox WHERE subject LIKE '%.waits' ORDER BY id")
    return [msgspec.json.decode(payload, type=AllocationChanged) for payload in payloads]
