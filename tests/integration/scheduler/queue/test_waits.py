"""What becomes known of why something waits: the code of the reason, since when, lines of its log, and events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import select

from libs.db.tables.tasks import wait_notes
from libs.events.changes import AllocationChanged
from libs.events.logs import LogBatch
from services.scheduler.plan.decisions import Wait
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.queue.wait_lines import PAUSE, tell_waits
from services.scheduler.queue.wait_notes import note_waits
from tests.harness import eventually
from tests.integration.scheduler.world import World

QUEUE = "In the queue of default: "
SLOTS = "waiting for slots to become free"


async def test_a_reason_has_a_code_that_stays_while_its_numbers_change(world: World) -> None:
    waiting = await _one_that_waits(world)
    [noted] = await _notes(world)
    assert (noted["allocation_id"], noted["code"], noted["reason"]) == (waiting["allocation_id"], "no_room", SLOTS)
    assert await _since(world, Wait(waiting["allocation_id"], WaitReason.NO_ROOM, "3 are missing")) == noted["since"]
    assert await _since(world, Wait(waiting["allocation_id"], WaitReason.POOL_QUOTA)) > noted["since"]
    [row] = [row for row in await world.api.allocations() if row["assigned_at"] is None]
    assert row["wait_reason"] == "the quota of the resource pool is used up"


async def test_the_log_of_a_task_says_once_why_it_waits(world: World) -> None:
    waiting = await _one_that_waits(world)
    now: datetime = waiting["requested_at"]
    assert await _tell(world, now + timedelta(seconds=1)) == 0, "it may start at once"
    at = now + timedelta(seconds=10)
    assert await _tell(world, at) == 1
    assert await _tell(world, at + timedelta(hours=1)) == 0, "it is known"
    assert await _lines(world, waiting) == [f"{QUEUE}{SLOTS}"]
    [event] = await _events(world)
    assert (event.allocation_id, event.reason_code, event.reason) == (waiting["allocation_id"], "no_room", SLOTS)


async def test_a_log_has_one_line_a_minute_about_it(world: World) -> None:
    waiting = await _one_that_waits(world)
    at = waiting["requested_at"] + timedelta(seconds=10)
    await _tell(world, at)
    await world.api.sql("UPDATE allocations SET wait_reason = 'more' WHERE assigned_at IS NULL")
    assert await _tell(world, at + PAUSE / 2) == 0
    assert await _tell(world, at + PAUSE) == 1
    assert await _lines(world, waiting) == [f"{QUEUE}{SLOTS}", f"{QUEUE}more"]
    codes = [event.reason_code for event in await _events(world)]
    assert codes == ["no_room", ""], "another release has written the second, and its code is not known"


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
    # Where that took long, its scheduler has told it already.
    await world.api.sql("UPDATE wait_notes SET told = '', told_at = NULL")
    await world.api.sql("DELETE FROM outbox")
    return dict(waiting)


async def _waits_for_slots(w: World) -> bool:
    return any(row["wait_reason"] == SLOTS for row in await w.api.allocations())


async def _since(world: World, wait: Wait) -> datetime:
    """Since when that is noted to be so, once it has been noted."""
    async with world.db.transaction() as connection:
        await note_waits(connection, [wait], now=datetime.now(UTC))
    [noted] = await _notes(world)
    since: datetime = noted["since"]
    return since


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
