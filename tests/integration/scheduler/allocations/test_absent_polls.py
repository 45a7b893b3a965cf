"""The owner of a trial is told when its training code stops asking whether to leave, and only then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import msgspec
import pytest

from libs.db.tables.tasks import preemption_polls
from libs.events.logs import LogBatch
from libs.tasks.preemption_polls import ABSENCE, NOTED_EVERY
from services.scheduler.allocations.absent_polls import AbsentPolls
from tests.harness import FakeClock
from tests.integration.api.tasks.service import Replica, Run, new_run, replica, row_of, rows_of, set_allocation
from tests.integration.scheduler.world import World

LONG_S = (ABSENCE + NOTED_EVERY).total_seconds() + 1


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def api(world: World, clock: FakeClock) -> AsyncIterator[Replica]:
    async with replica(world.db, world.bus, clock) as running:
        yield running


async def running(world: World, **allocation: Any) -> Run:
    return await new_run(world.db, **{"state": "RUNNING", "is_ready": True, **allocation})


async def poll(api: Replica, run: Run, *, headers: dict[str, str] | None = None, query: str = "") -> None:
    path = f"/api/v1/allocations/{run.allocation}/signals/preemption?timeout_seconds=0{query}"
    async with api.client(headers=headers or run.headers) as client:
        assert (await client.get(path)).status_code == 200


async def lines(world: World, run: Run) -> list[str]:
    """Of the log of its task, as they wait to be published."""
    payloads = await world.api.sql("SELECT payload FROM outbox WHERE subject LIKE 'logs.%' ORDER BY id")
    batches = [msgspec.msgpack.decode(payload, type=LogBatch) for payload in payloads]
    return [line.log.decode() for batch in batches if batch.allocation == run.allocation for line in batch.lines]


async def hears() -> bool:
    return True


def watching(world: World, clock: FakeClock) -> AbsentPolls:
    """Of a scheduler that has just begun."""
    return AbsentPolls(db=world.db, clock=clock, polls_are_heard=hears)


async def test_an_absence_is_told_once_and_so_is_the_next(world: World, api: Replica, clock: FakeClock) -> None:
    run, silent = await running(world), await running(world)
    watch = watching(world, clock)
    for _ in range(6):  # as the harness does: one after the other
        await poll(api, run)
        assert await watch.check() == []
        clock.advance(60)
    clock.advance(ABSENCE.total_seconds() - 30)
    assert await watch.check() == [], "it may have gone on until a minute after its last note"
    clock.advance(31)
    assert await watch.check() == [run.allocation]
    [line] = await lines(world, run)
    assert "has stopped asking the master whether to pause" in line
    clock.advance(LONG_S)
    # Who takes over from a scheduler that was killed knows it, too.
    other = watching(world, clock)
    assert [await watch.check(), await other.check()] == [[], []]
    async with replica(world.db, world.bus, clock) as successor:  # of an api that was killed
        await poll(successor, run)
    clock.advance(LONG_S)
    assert [*await watch.check(), *await other.check()] == [run.allocation]
    assert len(await lines(world, run)) == 2
    assert await lines(world, silent) == [], "it never asked"


@pytest.mark.parametrize(
    "columns",
    [
        {"preempt_reason": "allocation preempted by the cluster"},
        {"kill_reason": "user requested kill"},
        {"state": "TERMINATING"},
    ],
    ids=["asked to leave", "killed", "one of its pods has ended"],
)
async def test_what_is_about_to_end_is_not_missed(
    world: World, api: Replica, clock: FakeClock, columns: dict[str, Any]
) -> None:
    run = await running(world)
    watch = watching(world, clock)
    await watch.check()
    await poll(api, run)
    await set_allocation(world.db, run.allocation, **columns)
    clock.advance(LONG_S)
    assert await watch.check() == []


async def test_only_polls_of_the_training_code_count(world: World, api: Replica, clock: FakeClock) -> None:
    run = await running(world)
    await poll(api, run, headers=run.user_headers)
    await poll(api, run, query="&hasEnded=true")
    assert await rows_of(world.db, preemption_polls) == []
    await poll(api, run)
    assert len(await rows_of(world.db, preemption_polls)) == 1
    await poll(api, run, query="&hasEnded=true")
    assert await rows_of(world.db, preemption_polls) == [], "it has ended, and only its log is still delivered"


async def test_a_poll_is_written_once_a_minute(world: World, api: Replica, clock: FakeClock) -> None:
    run = await running(world)
    began = clock.now()
    for _ in range(3):
        await poll(api, run)
        clock.advance(29)
    assert (await row_of(world.db, preemption_polls)).polled_at == began
    await poll(api, run)
    assert (await row_of(world.db, preemption_polls)).polled_at == clock.now()


async def test_a_poll_is_answered_though_the_database_takes_nothing(
    world: World, api: Replica, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise asyncpg.DiskFullError("could not extend file: No space left on device")

    run = await running(world)
    with monkeypatch.context() as patched:
        patched.setattr("services.api.waits.preemption.note_poll", full)
        await poll(api, run)
    assert await rows_of(world.db, preemption_polls) == []
    await poll(api, run)
    assert len(await rows_of(world.db, preemption_polls)) == 1


async def test_after_an_outage_of_the_api_polls_get_time_to_come_again(
    world: World, api: Replica, clock: FakeClock
) -> None:
    there = [True]

    async def is_there() -> bool:
        return there[0]

    watch = AbsentPolls(db=world.db, clock=clock, polls_are_heard=is_there)
    run = await running(world)
    await watch.check()
    await poll(api, run)
    there[0] = False
    clock.advance(LONG_S)
    assert await watch.check() == []
    there[0] = True
    assert await watch.check() == []
    clock.advance(LONG_S - 30)
    assert await watch.check() == []
    clock.advance(30)
    assert await watch.check() == [run.allocation]
