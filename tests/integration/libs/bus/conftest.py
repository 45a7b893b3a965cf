"""A server as ``resolute up`` configures it, and each kind of user connected to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from deploy import nats_configuration
from deploy.nats_configuration import SUBSCRIBER
from libs.bus import Bus, connect_bus
from tests.harness import NatsServer
from tests.integration.libs.bus.users import (
    NAMED,
    OURS,
    PASSWORDS,
    SHORT_S,
    THEIRS,
    launcher_settings,
    services_settings,
    settings,
)


@pytest.fixture(scope="module")
def guarded(server_directory: Path) -> Iterator[NatsServer]:
    config = nats_configuration.authorization(PASSWORDS, (OURS, THEIRS), subscribers=NAMED)
    server = NatsServer(
        server_directory / uuid4().hex[:8], extra_config=config, subscribers=1 + len(NAMED), dies_with_parent=True
    )
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
async def services(guarded: NatsServer) -> AsyncIterator[Bus]:
    async with connect_bus(services_settings(guarded, subscribers=NAMED)) as bus:
        yield bus


@pytest.fixture
async def launcher(guarded: NatsServer, services: Bus) -> AsyncIterator[Bus]:
    async with connect_bus(launcher_settings(guarded, OURS)) as bus:
        yield bus


@pytest.fixture
async def refused(guarded: NatsServer, services: Bus) -> AsyncIterator[Bus]:
    """A launcher that does not wait for answers that will not come."""
    async with connect_bus(launcher_settings(guarded, OURS, request_timeout_s=SHORT_S)) as bus:
        yield bus


@pytest.fixture
async def subscriber(guarded: NatsServer, services: Bus) -> AsyncIterator[Bus]:
    async with connect_bus(settings(guarded, SUBSCRIBER, manage_streams=False, request_timeout_s=SHORT_S)) as bus:
        yield bus
