"""Tasks in which real programs run, against a small fake master."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.bus import Bus, BusSettings
from tests.harness.installed_client import interactive_python
from tests.integration.launcher.fakes import FakeMaster
from tests.integration.launcher.launcher_harness import LauncherHarness, open_harness


@pytest.fixture
async def harness(
    bus: Bus, bus_settings: BusSettings, tmp_path: Path, isolation: str, master: FakeMaster
) -> AsyncIterator[LauncherHarness]:
    """Its tasks have JupyterLab and TensorBoard."""
    settings = {"RESOLUTE_TASKS__MASTER_URL": master.url}
    async with open_harness(bus, bus_settings.url, tmp_path, str(interactive_python()), settings) as opened:
        yield opened
