"""Nothing is lost and nobody is disturbed when the launcher, or the bus, is killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.bus import BusSettings, connect_bus
from tests.harness import NatsServer
from tests.harness.waiting import eventually
from tests.integration.launcher.launcher_harness import LauncherHarness, command, open_harness

A = "11111111-2222-4333-8444-555555555555.1"
B = "99999999-2222-4333-8444-555555555555.1"


async def test_task_runs_on_while_the_launcher_is_killed_and_its_exit_code_is_found(harness: LauncherHarness) -> None:
    await harness.run(
        A,
        command(
            "echo $$; while [ ! -e /determined_shared_fs/go ]; do sleep 0.05; done; exit 42",
            shared_fs_host_path=str(harness.state_dir.parent),
        ),
    )
    before = await harness.until_running(A)
    supervisor = harness.supervisor(A)
    harness.launcher.kill()
    assert harness.pids(A)
    (harness.state_dir.parent / "go").touch()
    await eventually(lambda: not harness.pids(A))
    harness.launcher.start()
    ended = await harness.until_ended(A)
    assert (ended.pods[0].exit_code, ended.pods[0].failure) == (42, "FAILED")
    assert ended.pods[0].name == before.pods[0].name
    assert harness.supervisor(A) == supervisor


async def test_restarted_launcher_goes_on_with_the_same_task(harness: LauncherHarness) -> None:
    await harness.run(A, command("sleep 300"))
    before = await harness.until_running(A)
    [pid] = await eventually(lambda: harness.running(A, "sleep"))
    harness.launcher.restart()
    again = await harness.until(A, lambda seen: seen.revision > before.revision)
    assert again.pods == before.pods
    assert harness.running(A, "sleep") == [pid]
    await harness.stop(A, grace_s=5)
    ended = await harness.until_ended(A)
    assert (ended.stopped, ended.pods[0].exit_code) == (True, 143)


async def test_end_is_told_again_after_a_restart_as_long_as_the_order_stands(harness: LauncherHarness) -> None:
    await harness.run(A, command("exit 5"))
    first = await harness.until_ended(A)
    harness.launcher.restart()
    again = await harness.until(A, lambda seen: seen.revision > first.revision)
    assert (again.gone, again.pods[0].exit_code) == (True, 5)


async def test_order_that_was_withdrawn_meanwhile_leaves_nothing(harness: LauncherHarness) -> None:
    await harness.run(A, command("sleep 300"))
    await harness.until_running(A)
    harness.launcher.kill()
    await harness.withdraw(A)
    harness.launcher.start()
    await eventually(lambda: harness.remains() == [])


async def test_stop_that_was_ordered_meanwhile_is_done(harness: LauncherHarness) -> None:
    await harness.run(A, command("sleep 300"))
    await harness.until_running(A)
    harness.launcher.kill()
    await harness.stop(A, grace_s=5)
    harness.launcher.start()
    assert (await harness.until_ended(A)).stopped


async def test_supervisor_that_died_meanwhile_is_found_out(harness: LauncherHarness) -> None:
    await harness.run(A, command("sleep 300"))
    await harness.until_running(A)
    harness.launcher.kill()
    os.kill(harness.supervisor(A), signal.SIGKILL)
    assert harness.pids(A)
    harness.launcher.start()
    ended = await harness.until_ended(A)
    assert ended.pods[0].failure == "NODE_LOST"
    assert harness.pids(A) == []


@pytest.mark.parametrize("delay_s", [0.0, 0.005, 0.01, 0.02, 0.04, 0.08])
async def test_launcher_killed_while_it_starts_a_task_leaves_exactly_one(
    harness: LauncherHarness, delay_s: float
) -> None:
    await eventually(harness.capacity)
    script = "echo started >> /determined_shared_fs/starts; sleep 300"
    await harness.run(A, command(script, shared_fs_host_path=str(harness.state_dir.parent)))
    await asyncio.sleep(delay_s)  # the moment is the point of the test; whichever it is, the outcome is the same
    harness.launcher.restart()
    await harness.until_running(A)
    starts = harness.state_dir.parent / "starts"
    await eventually(lambda: starts.exists() and starts.read_text())
    assert starts.read_text() == "started\n"


@pytest.fixture
async def harness_on_own_bus(
    own_nats_server: NatsServer, tmp_path: Path, stub_python: str, isolation: str
) -> AsyncIterator[LauncherHarness]:
    settings = BusSettings(url=own_nats_server.url, name="test")
    async with (
        connect_bus(settings) as bus,
        open_harness(bus, settings.url, tmp_path, stub_python, {"RESOLUTE_LOOP__ABSENCE_GRACE_S": "600"}) as opened,
    ):
        yield opened


async def test_what_happened_while_the_bus_was_away_is_told_afterwards(
    harness_on_own_bus: LauncherHarness, own_nats_server: NatsServer
) -> None:
    harness = harness_on_own_bus
    shared = str(harness.state_dir.parent)
    await harness.run(
        A, command("while [ ! -e /determined_shared_fs/go ]; do sleep 0.05; done; exit 6", shared_fs_host_path=shared)
    )
    await harness.until_running(A)
    own_nats_server.kill()
    (harness.state_dir.parent / "go").touch()
    await eventually(lambda: not harness.pids(A))
    own_nats_server.start()
    ended = await harness.until_ended(A)
    assert ended.pods[0].exit_code == 6


async def test_bus_that_forgot_its_orders_ends_no_task(
    harness_on_own_bus: LauncherHarness, own_nats_server: NatsServer
) -> None:
    harness = harness_on_own_bus
    await harness.run(A, command("sleep 300"))
    running = await harness.until_running(A)
    own_nats_server.kill()
    shutil.rmtree(own_nats_server.store_directory)
    own_nats_server.start()
    # What was observed before went with the disk of the server, and is told again.
    await harness.until(A, lambda seen: seen.revision > running.revision)
    assert harness.pids(A)
    await harness.run(A, command("sleep 300"))
    await harness.run(B, command("true"))
    await harness.until_ended(B)
    assert harness.pids(A)
