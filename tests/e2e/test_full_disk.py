"""A disk is full for a while, of the bus or of everything: whoever asks is told, and all goes on with space again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import asyncpg
import httpx
import pytest

from deploy.local import system
from deploy.local.layout import Layout
from deploy.local.leftover_tasks import tasks
from deploy.local.supervision import processes
from tests.harness.full_disk import SmallDisk, small_disk
from tests.harness.looking import Looking
from tests.harness.processes import REPOSITORY
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, arguments, state_folder
from tests.programs import submit

NOT_RUNNING = 3


pytestmark = pytest.mark.chaos

PROGRESS = 5
"""Steps that the trial does between two times at which the disk is full, seen in its metrics and in its log."""
HELD_S = (2, 12, 25)
"""How long the disk is full, in turn: shorter and longer than what is looked at every few seconds."""
SWITCHES = 50
"""More segments of the write-ahead log than PostgreSQL has in advance; a new one is what it cannot do without."""


@pytest.fixture
def on_small_disk() -> Iterator[tuple[WholeSystem, SmallDisk]]:
    with state_folder() as state, small_disk(state / "nats", size_mb=48) as disk:
        layout = Layout(state)
        try:
            yield WholeSystem(layout, system.start(layout, arguments(slots=2)), state.parent / "homes"), disk
        finally:
            system.stop(layout)


def test_the_bus_goes_on_when_its_disk_has_space_again(on_small_disk: tuple[WholeSystem, SmallDisk]) -> None:
    running, disk = on_small_disk
    pid = running.pids()["nats"]
    assert (status(running), health(running)) == ([], "up")
    disk.fill()
    experiment = submit(running.det(), "steps.py")
    wait_until(lambda: "EVENTS" in status(running), what="status tells")
    wait_until(lambda: health(running) == "down", what="/health tells")
    assert running.pids()["nats"] == pid  # it would find no more space than this one
    disk.free()
    with running.http() as http:
        Looking(http).wait(experiment)
    assert running.pids()["nats"] != pid
    assert (status(running), health(running)) == ([], "up")


@pytest.fixture
def all_on_small_disk() -> Iterator[tuple[WholeSystem, SmallDisk]]:
    with state_folder() as state, small_disk(state, size_mb=320) as disk:
        layout = Layout(state)
        try:
            started = system.start(layout, arguments(slots=2, standby="yes"))
            yield WholeSystem(layout, started, state.parent / "homes"), disk
        finally:
            system.stop(layout)
            tasks.end(layout)


@pytest.mark.parametrize(
    "rounds", [3, pytest.param(20, marks=[pytest.mark.long, pytest.mark.timeout(3600)])], ids="{} times".format
)
def test_everything_goes_on_when_the_state_folder_has_space_again(
    all_on_small_disk: tuple[WholeSystem, SmallDisk], rounds: int
) -> None:
    running, disk = all_on_small_disk
    experiment = submit(running.det(), "steps.py", hyperparameters={"steps": 0, "pause_s": 0.1})
    with running.http() as http:
        look = Looking(http)
        trial = int(wait_until(lambda: look.trials(experiment), what="the trial is there")[0]["id"])
        wait_for_progress(look, trial, after="the start")
        for number in range(rounds):
            with disk.filled():
                if number % 2:
                    end_the_log_segment(running)
                wait_until(lambda: answer(running).status_code == 503, what="/health is down")
                assert answer(running).json()["problems"], "and says why"
                assert full_file_systems(running) == [str(disk.path)]
                if number % 3 == 2:
                    kill_the_supervisor_and_start_anew(running)
                time.sleep(HELD_S[number % len(HELD_S)])
            wait_until(lambda: answer(running).status_code == 200, timeout_s=120, what=f"/health is up, time {number}")
            wait_until(lambda: not full_file_systems(running), what="status is good again")
            wait_for_progress(look, trial, after=f"time {number}")
        (running.layout.checkpoints / "finish").touch()
        look.wait(experiment)
        assert look.trial(experiment)["restarts"] == 0
        last = look.trial(experiment)["totalBatchesProcessed"]
        assert look.steps(trial) == list(range(1, last + 1))
        assert look.steps(trial, "validation") == [last]
        said = [line for line in look.printed(trial) if line.startswith(("step ", "resumed ", "asked ", "done "))]
        assert said == [*(f"step {number}" for number in range(1, last + 1)), f"done after step {last}"]
    log = (running.layout.logs / "supervisor.log").read_text()
    assert f"the file system {disk.path} (" in log


def test_commands_work_while_the_state_folder_is_full(all_on_small_disk: tuple[WholeSystem, SmallDisk]) -> None:
    running, disk = all_on_small_disk
    experiment = submit(running.det(), "steps.py", hyperparameters={"steps": 0, "pause_s": 0.1}, max_restarts=5)
    with running.http() as http:
        look = Looking(http)
        trial = int(wait_until(lambda: look.trials(experiment), what="the trial is there")[0]["id"])
        wait_for_progress(look, trial, after="the start")
    with disk.filled():
        end_the_log_segment(running)
        found = resolute(running, "doctor")
        assert f"problem  disk: the file system {disk.path} (0.0 of 320.0 MB free) is full" in found.stdout
        down = resolute(running, "down", "--tasks")
        assert (down.returncode, down.stdout.splitlines()[-1]) == (0, "ended 1 tasks"), down.stderr
        assert running.pids() == {}
        assert tasks.running(running.layout) == []
        up = resolute(running, "up")
        assert up.returncode == 1
        assert f"the file system {disk.path} (0.0 of 320.0 MB free) is full" in up.stderr
        assert "Traceback" not in up.stderr
    wait_until(lambda: not full_file_systems(running), timeout_s=120, what="what was started goes on by itself")
    assert resolute(running, "up").returncode == 0
    with running.http() as http:
        wait_for_progress(Looking(http), trial, after="the next start")


def end_the_log_segment(running: WholeSystem) -> None:
    """Have PostgreSQL need a new segment of its write-ahead log, for which there is no space: it ends over that."""
    try:
        for _ in range(SWITCHES):
            running.rows("SELECT pg_logical_emit_message(false, 'test', 'x'), pg_switch_wal()")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return


def kill_the_supervisor_and_start_anew(running: WholeSystem) -> None:
    found = processes.find(running.layout, processes.SUPERVISOR)
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    wait_until(lambda: processes.find(running.layout, processes.SUPERVISOR) is None, what="the supervisor is killed")
    up = resolute(running, "up")
    assert processes.find(running.layout, processes.SUPERVISOR) is not None, up.stderr


def wait_for_progress(look: Looking, trial: int, *, after: str) -> None:
    before = wait_until(lambda: last_steps(look, trial), timeout_s=180, what=f"the api answers after {after}")

    def moved() -> bool:
        now = last_steps(look, trial)
        return bool(now) and all(new >= old + PROGRESS for new, old in zip(now, before, strict=True))

    wait_until(moved, timeout_s=180, every_s=0.2, what=f"the trial goes on after {after}")


def last_steps(look: Looking, trial: int) -> tuple[int, ...]:
    """Last step in the metrics and in the log; empty while nobody answers."""
    try:
        printed = [int(line.split()[1]) for line in look.printed(trial) if line.startswith("step ")]
        return (max(look.steps(trial), default=0), max(printed, default=0))
    except httpx.HTTPError:
        return ()


def answer(running: WholeSystem) -> httpx.Response:
    """Of /health; the api keeps its port while it is started anew, so somebody answers in the end."""
    return httpx.get(f"{running.url}/health", timeout=60)


def full_file_systems(running: WholeSystem) -> list[str]:
    """What ``resolute status`` names; it says that something is wrong then."""
    done = resolute(running, "status", "--json")
    assert done.stdout, done.stderr
    found: list[str] = json.loads(done.stdout)["full_file_systems"]
    assert not found or done.returncode == NOT_RUNNING
    return found


def resolute(running: WholeSystem, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "deploy.cli", "--state", str(running.layout.root), *arguments]
    return subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def status(running: WholeSystem) -> list[str]:
    """What ``resolute status`` says that the bus does not store."""
    done = resolute(running, "status", "--json")
    found: list[str] = json.loads(done.stdout)["nats_refuses"]
    assert done.returncode == (NOT_RUNNING if found else 0), done.stderr
    return found


def health(running: WholeSystem) -> str:
    answer = httpx.get(f"{running.url}/health", timeout=30)
    return str(answer.json()["bus"])
