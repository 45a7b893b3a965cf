"""The disk of the bus is full for a while: everybody who asks is told, and all goes on when there is space again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from deploy.local import system
from deploy.local.layout import Layout
from tests.harness.full_disk import SmallDisk, small_disk
from tests.harness.looking import Looking
from tests.harness.processes import REPOSITORY
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, arguments, state_folder
from tests.programs import submit

NOT_RUNNING = 3


pytestmark = pytest.mark.chaos


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


def status(running: WholeSystem) -> list[str]:
    """What ``resolute status`` says that the bus does not store."""
    argv = [sys.executable, "-m", "deploy.cli", "--state", str(running.layout.root), "status", "--json"]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    found: list[str] = json.loads(done.stdout)["nats_refuses"]
    assert done.returncode == (NOT_RUNNING if found else 0), done.stderr
    return found


def health(running: WholeSystem) -> str:
    answer = httpx.get(f"{running.url}/health", timeout=30)
    return str(answer.json()["bus"])
