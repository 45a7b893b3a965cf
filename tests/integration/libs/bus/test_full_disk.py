"""A server that met a full disk is seen to refuse, also when there is space again, until it is started anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from deploy import nats_configuration
from deploy.local.supervision import bus_check
from deploy.local.supervision.bus_check import StorageCheck, disk_can_store
from deploy.nats_configuration import SUPERVISOR
from libs.bus import Bus, connect_bus, storage_probe
from libs.errors import Unavailable
from libs.events.permissions import SUPERVISOR_INBOX
from libs.events.subjects import EVENTS_STREAM, STREAMS, event, storage_check
from tests.harness import NatsServer, eventually
from tests.harness.full_disk import SmallDisk, small_disk
from tests.integration.libs.bus.users import OURS, PASSWORDS, services_settings

SUBJECT = event("trial", 1, "state")


@pytest.fixture
def disk(server_directory: Path) -> Iterator[SmallDisk]:
    with small_disk(server_directory / uuid4().hex[:8], size_mb=16) as made:
        yield made


@pytest.fixture
async def server(disk: SmallDisk, server_directory: Path) -> AsyncIterator[NatsServer]:
    config = nats_configuration.authorization(PASSWORDS, (OURS,))
    server = NatsServer(disk.path / "nats", extra_config=config, dies_with_parent=True)
    await asyncio.to_thread(server.start)
    try:
        yield server
    finally:
        await asyncio.to_thread(server.stop)


def check_of(server: NatsServer) -> StorageCheck:
    return StorageCheck(
        port=server.port,
        user=SUPERVISOR,
        password=PASSWORDS[SUPERVISOR],
        inbox=SUPERVISOR_INBOX,
        subjects={stream: storage_check(stream) for stream in STREAMS},
        directory=str(server.store_directory),
    )


async def test_what_met_a_full_disk_refuses_until_it_is_started_anew(
    server: NatsServer, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_probe, "REMEMBERED_S", 0)
    monkeypatch.setattr(storage_probe, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(bus_check, "TIMEOUT_S", 0.5)
    async with connect_bus(services_settings(server, request_timeout_s=0.5)) as bus:
        assert await bus.refused_streams() == ()
        assert await looked(server) == []
        disk.fill()
        assert not disk_can_store(str(server.store_directory))
        with pytest.raises(Unavailable):
            await bus.publish(SUBJECT, bytes(100_000))
        disk.free()
        assert disk_can_store(str(server.store_directory))
        # Only the stream that was written to meanwhile is hurt.
        assert await bus.refused_streams() == (EVENTS_STREAM,)
        assert await looked(server) == [EVENTS_STREAM]
        with pytest.raises(Unavailable):
            await bus.publish(SUBJECT, b"{}")
        await asyncio.to_thread(server.restart)
        await eventually(lambda: _refuses_nothing(bus))
        assert await looked(server) == []
        await bus.publish(SUBJECT, b"{}")


async def _refuses_nothing(bus: Bus) -> bool:
    return await bus.refused_streams() == ()


async def looked(server: NatsServer) -> list[str]:
    """What the supervisor of this machine sees."""
    return await asyncio.to_thread(bus_check.refused, check_of(server))
