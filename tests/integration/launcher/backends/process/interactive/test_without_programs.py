"""A machine without the program that a task is about: one sentence says so, of no image, and the task ends with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from deploy.local.servers.ports import free_port
from libs.bus import Bus, BusSettings
from libs.events.orders import BindMount, TaskSpec
from tests.harness.installed_client import client_python
from tests.integration.launcher.backends.process.interactive.tasks import (
    ALLOCATION,
    notebook,
    shell,
    tensorboard,
)
from tests.integration.launcher.fakes import FakeMaster
from tests.integration.launcher.launcher_harness import LauncherHarness, open_harness


@pytest.fixture
async def harness(
    bus: Bus, bus_settings: BusSettings, tmp_path: Path, isolation: str, master: FakeMaster
) -> AsyncIterator[LauncherHarness]:
    """Its tasks have the client and nothing else."""
    settings = {
        "RESOLUTE_TASKS__MASTER_URL": master.url,
        "RESOLUTE_PROCESS__ALLOWED_SYSTEM_MOUNTS": '["/usr/sbin"]',
    }
    async with open_harness(bus, bus_settings.url, tmp_path, str(client_python()), settings) as opened:
        yield opened


@pytest.mark.parametrize(
    ("task", "needs", "install"),
    [
        (notebook(free_port()), "JupyterLab", f"{client_python()} -m pip install jupyterlab"),
        (shell(free_port()), "/usr/sbin/sshd", "openssh-server"),
        (
            tensorboard(free_port(), {"type": "directory"}, "/x"),
            "tensorboard",
            f"{client_python()} -m pip install tensorboard",
        ),
    ],
    ids=["notebook", "shell", "tensorboard"],
)
async def test_a_missing_program_is_named_in_the_log_and_in_the_exit_status(
    harness: LauncherHarness, tmp_path: Path, task: TaskSpec, needs: str, install: str
) -> None:
    (tmp_path / "nothing").mkdir()
    over = BindMount(host_path=str(tmp_path / "nothing"), container_path="/usr/sbin")
    await harness.run(ALLOCATION, structs.replace(task, bind_mounts=(over,)))
    ended = await harness.until_ended(ALLOCATION, timeout_s=60)
    [pod] = ended.pods
    assert (pod.exit_code, pod.failure) == (1, "FAILED"), harness.printed(ALLOCATION, "stderr")
    assert needs in pod.message
    assert install in pod.message
    assert "image" not in pod.message
    assert f"ERROR: {pod.message}" in harness.printed(ALLOCATION, "stderr")
