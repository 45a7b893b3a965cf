"""A launcher on a real bus. Without the rights to isolate processes there is nothing to test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.bus import Bus, BusSettings
from services.launcher.backends.process.supervision.spawning import IMPORT_ROOT
from tests.integration.launcher.launcher_harness import LauncherHarness, make_python, open_harness


@pytest.fixture(scope="session")
def isolation() -> str:
    """How this machine isolates: ``directly`` or ``user namespace``."""
    probe = subprocess.run(
        [
            os.path.realpath(sys.executable),
            *("-S", "-E", "-s", "-m", "services.launcher.backends.process.isolation.probe"),
        ],
        cwd=IMPORT_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode != 0:
        pytest.skip(f"needs root, or sysctl kernel.unprivileged_userns_clone=1 and the like: {probe.stdout}")
    return probe.stdout


@pytest.fixture
def stub_python(tmp_path: Path) -> str:
    return make_python(tmp_path)


@pytest.fixture
async def harness(
    bus: Bus, bus_settings: BusSettings, tmp_path: Path, stub_python: str, isolation: str
) -> AsyncIterator[LauncherHarness]:
    async with open_harness(bus, bus_settings.url, tmp_path, stub_python) as opened:
        yield opened
