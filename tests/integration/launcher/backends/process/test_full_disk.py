"""The disk of the launcher and its tasks is full for a while: nothing of a task is lost, and none fails over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from libs.bus import Bus, BusSettings
from tests.harness.full_disk import SmallDisk, small_disk
from tests.harness.waiting import eventually
from tests.integration.launcher.fakes import FakeIntake, serve_intake
from tests.integration.launcher.launcher_harness import LauncherHarness, command, open_harness

A = "11111111-2222-4333-8444-555555555555.1"
B = "99999999-2222-4333-8444-555555555555.1"
LINES = 2000
WHILE_FULL_S = 1.0
"""Long enough for everybody to meet the full disk, and to try again."""


@pytest.fixture
def intake() -> Iterator[FakeIntake]:
    with serve_intake() as fake:
        yield fake


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "small", size_mb=16) as made:
        yield made


@pytest.fixture
async def harness(
    bus: Bus, bus_settings: BusSettings, disk: SmallDisk, stub_python: str, isolation: str, intake: FakeIntake
) -> AsyncIterator[LauncherHarness]:
    settings = {"RESOLUTE_TASKS__LOG_INTAKE_URL": intake.url}
    async with open_harness(bus, bus_settings.url, disk.path, stub_python, settings) as opened:
        yield opened


async def test_a_task_goes_on_and_ends_as_it_would_have(
    harness: LauncherHarness, disk: SmallDisk, intake: FakeIntake
) -> None:
    script = (
        f"until [ -e /run/determined/go ]; do sleep 0.02; done; for i in $(seq {LINES}); do echo line $i; done; exit 5"
    )
    await harness.run(A, command(script))
    await harness.until_running(A)
    with disk.filled():
        (harness.run_dir(A) / "go").touch()
        await harness.run(B, command("echo waited"))
        await eventually(lambda: "step.failed" in harness.launcher.log(), what="what is to be started waits")
    ended = await harness.until_ended(A)
    assert (ended.pods[0].exit_code, ended.pods[0].failure) == (5, "FAILED")
    started_late = await harness.until_ended(B)
    assert (started_late.pods[0].exit_code, started_late.pods[0].failure) == (0, "")
    await eventually(lambda: len(intake.ends) == 4, what=harness.launcher.log())
    lines = [line for line in intake.printed() if line.startswith(b"line ")]
    assert lines == [b"line %d" % number for number in range(1, LINES + 1)]


async def test_an_end_on_a_full_disk_is_told_once_there_is_space(
    harness: LauncherHarness, disk: SmallDisk, intake: FakeIntake
) -> None:
    await harness.run(A, command("echo begun; until [ -e /run/determined/go ]; do sleep 0.02; done; exit 5"))
    await harness.until_running(A)
    await eventually(lambda: b"begun" in intake.printed(), what="it has space for its end")
    with disk.filled():
        (harness.run_dir(A) / "go").touch()
        await eventually(lambda: not harness.pids(A), what="it has ended")
        await asyncio.sleep(WHILE_FULL_S)
        assert not harness.last(A).gone
    ended = await harness.until_ended(A)
    assert (ended.pods[0].exit_code, ended.pods[0].failure) == (5, "FAILED")
    await eventually(lambda: len(intake.ends) == 2, what=harness.launcher.log())


async def test_whoever_fills_the_disk_can_be_stopped(harness: LauncherHarness, disk: SmallDisk) -> None:
    await harness.run(A, command("sleep 600"))
    await harness.until_running(A)
    with disk.filled():
        await harness.stop(A, grace_s=1)
        await eventually(lambda: not harness.running(A, "sleep"), what=harness.launcher.log())
    ended = await harness.until_ended(A)
    assert (ended.stopped, ended.pods[0].failure) == (True, "DELETED")
