"""Launchers against a real API server, with simulated nodes: everything but containers is as in a real cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.bus import Bus
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    LauncherHarness,
    Namespace,
    launcher_kubeconfig,
    new_namespace,
    open_place,
)


@pytest.fixture
async def namespace(kubeconfig: Path) -> AsyncIterator[Namespace]:
    async with new_namespace(kubeconfig) as made:
        yield made


@pytest.fixture
async def idle(bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path) -> AsyncIterator[LauncherHarness]:
    """A harness whose launcher has not been started."""
    async with open_place(bus, namespace, await launcher_kubeconfig(namespace, kubeconfig, tmp_path)) as opened:
        yield opened


@pytest.fixture
async def harness(idle: LauncherHarness) -> LauncherHarness:
    """A harness with its launcher running."""
    await idle.start()
    return idle
