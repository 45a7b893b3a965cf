"""Notebooks and TensorBoards that nobody uses end, and none that somebody may still use
(docs/reference/tasks-and-cli.md 2.10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from libs.bus import CoreMessage
from libs.db.failures import is_connection_failure
from libs.events import subjects
from services.scheduler.allocations.reconciler import AllocationReconciler
from services.scheduler.settings import EngineSettings, SchedulerSettings
from services.scheduler.tasks.idle_ending import IdleEnding, api_notes_use
from tests.builders import insert_interactive
from tests.harness import FakeClock, eventually
from tests.integration.scheduler.world import World

GRACE_S = 60
TIMEOUT_S = 600.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def noted() -> bool:
    return True


def ending(world: World, clock: FakeClock, use_is_noted: Callable[[], Awaitable[bool]] = noted) -> IdleEnding:
    """That of a scheduler which has just begun."""
    allocations = AllocationReconciler(db=world.db, clock=clock, ended=lambda _: None)
    return IdleEnding(db=world.db, clock=clock, allocations=allocations, use_is_noted=use_is_noted, grace_s=GRACE_S)


async def run_task(world: World, clock: FakeClock, task_type: str = "NOTEBOOK", **columns: Any) -> str:
    """A service that runs and is registered, and may be idle for ten minutes; returns its allocation."""
    now = clock.now()
    running = {"state": "RUNNING", "assigned_at": now, "start_time": now, "proxy_address": "10.0.0.1"}
    allocation = {**running, **columns.pop("allocation", {})}
    row = {"idle_timeout_s": TIMEOUT_S, "last_active_at": now, **columns}
    async with world.db.transaction() as connection:
        return await insert_interactive(connection, task_type=task_type, allocation=allocation, **row)


async def use(world: World, clock: FakeClock, allocation: str) -> None:
    """Somebody uses it, as the proxy notes."""
    await world.api.sql(
        "UPDATE interactive_tasks SET last_active_at = :now WHERE task_id = :task",
        now=clock.now(),
        task=allocation.rpartition(".")[0],
    )


@pytest.mark.parametrize("task_type", ["NOTEBOOK", "TENSORBOARD"])
async def test_what_nobody_uses_ends(world: World, clock: FakeClock, task_type: str) -> None:
    watch = ending(world, clock)
    idle = await run_task(world, clock, task_type)
    clock.advance(TIMEOUT_S)
    assert await watch.look() == []
    clock.advance(GRACE_S + 1)
    assert await watch.look() == [idle]
    row = await world.api.allocation(idle)
    assert row["kill_reason"] == "idle for more than 10m0s: service is inactive"
    assert (row["killed_at"], row["killed_while_running"]) == (clock.now(), True)
    assert await watch.look() == [], "once is enough"


async def test_use_keeps_it_alive(world: World, clock: FakeClock) -> None:
    watch = ending(world, clock)
    busy = await run_task(world, clock)
    await watch.look()
    for _ in range(5):
        clock.advance(TIMEOUT_S - 1)
        await use(world, clock, busy)
        assert await watch.look() == []
    clock.advance(TIMEOUT_S + 1)
    assert await watch.look() == [busy]


@pytest.mark.parametrize(
    "columns",
    [
        {"idle_timeout_s": None},
        {"allocation": {"proxy_address": None}},
        {"allocation": {"state": "PENDING", "assigned_at": None, "start_time": None, "proxy_address": None}},
    ],
    ids=["may be idle for ever", "is not registered yet", "waits in the queue"],
)
async def test_what_is_never_ended(world: World, clock: FakeClock, columns: dict[str, Any]) -> None:
    watch = ending(world, clock)
    await run_task(world, clock, **columns)
    for _ in range(3):
        clock.advance(timedelta(days=1))
        assert await watch.look() == []


async def test_behind_a_gateway_the_pod_is_the_registration(world: World, clock: FakeClock) -> None:
    watch = ending(world, clock)
    address = {"container_ip": "1.2.3.4", "container_port": 8888, "host_ip": "1.2.3.4", "host_port": 40000}
    pods = [{"name": "p", "state": "RUNNING", "proxied": [address]}]
    unused = {"allocation": {"proxy_address": None, "pods": pods}, "last_active_at": None}
    idle = await run_task(world, clock, **unused)
    await watch.look()
    clock.advance(TIMEOUT_S + 1)
    assert await watch.look() == [idle], "counted from its start, as nobody was there ever"


async def test_a_scheduler_that_has_just_begun_lets_users_speak_first(world: World, clock: FakeClock) -> None:
    kept, idle = await run_task(world, clock), await run_task(world, clock)
    clock.advance(TIMEOUT_S * 2)
    watch = ending(world, clock)
    assert await watch.look() == []
    clock.advance(GRACE_S)
    await use(world, clock, kept)
    assert await watch.look() == []
    clock.advance(1)
    assert await watch.look() == [idle]


async def test_after_an_outage_it_does_the_same(
    world: World, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = ending(world, clock)
    idle = await run_task(world, clock)
    await watch.look()
    clock.advance(TIMEOUT_S + GRACE_S)
    with monkeypatch.context() as patched:
        patched.setattr(world.db, "read", _away)
        with pytest.raises(ConnectionError) as failed:
            await watch.look()
        assert is_connection_failure(failed.value)
    assert await watch.look() == []
    clock.advance(GRACE_S + 1)
    assert await watch.look() == [idle]


async def test_nobody_is_ended_while_no_api_could_know_better(world: World, clock: FakeClock) -> None:
    there = [True]

    async def is_there() -> bool:
        return there[0]

    watch = ending(world, clock, is_there)
    kept, idle = await run_task(world, clock), await run_task(world, clock)
    await watch.look()
    there[0] = False
    for _ in range(3):
        clock.advance(TIMEOUT_S)
        assert await watch.look() == []
    there[0] = True
    assert await watch.look() == []
    clock.advance(GRACE_S)
    await use(world, clock, kept)
    clock.advance(1)
    assert await watch.look() == [idle]


async def test_without_any_api_nobody_answers(world: World) -> None:
    assert not await api_notes_use(world.bus)
    async with world.bus.serve(subjects.NOTES_USE, _answer):
        assert await api_notes_use(world.bus)


async def test_the_scheduler_looks_and_its_task_ends_without_an_error(world: World) -> None:
    at_once = SchedulerSettings(engine=EngineSettings(log_wait_s=0, idle_grace_s=0))
    async with world.db.transaction() as connection:
        waiting = await insert_interactive(connection, task_type="NOTEBOOK", idle_timeout_s=0.5, task={"owner_id": 2})
    async with world.scheduling(at_once) as w, world.bus.serve(subjects.NOTES_USE, _answer):
        [allocation] = await w.launcher.running()
        assert allocation == waiting
        await w.api.sql("UPDATE allocations SET proxy_address = 'here'")
        row = await eventually(lambda: _over(w, allocation))
    assert row["kill_reason"] == "idle for more than 500ms: service is inactive"
    assert (row["exit_error"], row["exit_kind"]) == (None, "")
    assert row["exit_reason"].startswith("allocation killed after")


async def _answer(_: CoreMessage) -> bytes:
    return b""


async def _over(world: World, allocation: str) -> Any:
    row = await world.api.allocation(allocation)
    return row if row["exit_processed"] else None


def _away() -> Any:
    raise ConnectionError("the database is away")
