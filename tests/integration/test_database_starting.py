"""Services wait for a PostgreSQL that is starting up, whether they start with it or have worked with it before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from libs.bus import BusSettings
from tests.harness import ServiceProcess, eventually
from tests.harness.starting_postgres import StartingPostgres


class Service(NamedTuple):
    name: str
    at_work: str
    """The event in its log that says that it is, or is again."""
    env: dict[str, str] = {}


LOGS = {
    "RESOLUTE_INTAKE__HOST": "127.0.0.1",
    "RESOLUTE_INTAKE__PORT": "0",
    "RESOLUTE_WRITER__HEARTBEAT_S": "0.1",
    "RESOLUTE_RETENTION__INTERVAL_S": "0.1",
}
SERVICES = [
    Service("api", "http.listening", {"RESOLUTE_HTTP__HOST": "127.0.0.1", "RESOLUTE_HTTP__PORT": "0"}),
    Service("scheduler", "lease.won", {"RESOLUTE_LEASE__CHECK_S": "0.1"}),
    Service("logs", "http.listening", LOGS),
]
REFUSALS = 12
"""More than one loop meets before it pauses: every loop of a service has met some."""
by_service = pytest.mark.parametrize("service", SERVICES, ids=[service.name for service in SERVICES])


@pytest.fixture
async def starting(database_url: str) -> AsyncIterator[StartingPostgres]:
    async with StartingPostgres(database_url).serving() as server:
        yield server


def process(service: Service, directory: Path, *, database: StartingPostgres, bus_url: str) -> ServiceProcess:
    env = {"RESOLUTE_DATABASE__URL": database.url, "RESOLUTE_DATABASE__POOL_SIZE": "5", "RESOLUTE_BUS__URL": bus_url}
    return ServiceProcess(f"services.{service.name}.main", log_path=directory / "log", env={**env, **service.env})


async def is_at_work(service: Service, running: ServiceProcess, *, times: int = 1) -> None:
    def look() -> bool:
        assert running.is_running, running.log()
        return running.log().count(service.at_work) >= times

    await eventually(look, what=service.at_work)


async def ends_well(running: ServiceProcess) -> None:
    # In a thread: what it says to the database meanwhile goes through this process.
    assert await asyncio.to_thread(running.stop) == 0, running.log()


@by_service
async def test_it_waits_when_the_database_starts_up_under_it(
    service: Service, starting: StartingPostgres, bus_settings: BusSettings, tmp_path: Path
) -> None:
    with process(service, tmp_path, database=starting, bus_url=bus_settings.url) as running:
        await is_at_work(service, running)
        await starting.starts_up()
        await eventually(lambda: starting.refused >= REFUSALS or not running.is_running)
        assert running.is_running, running.log()
        starting.has_started()
        if service.name == "scheduler":
            await is_at_work(service, running, times=2)
        await ends_well(running)


@by_service
@pytest.mark.parametrize("connections", [0, 1, 2], ids=["from the first", "from the second", "from the third"])
async def test_it_waits_when_the_database_starts_up_while_it_starts(
    connections: int, service: Service, starting: StartingPostgres, bus_settings: BusSettings, tmp_path: Path
) -> None:
    await starting.starts_up(after_connections=connections)
    with process(service, tmp_path, database=starting, bus_url=bus_settings.url) as running:
        await eventually(lambda: starting.refused >= 2 or not running.is_running)
        assert running.is_running, running.log()
        starting.has_started()
        await is_at_work(service, running)
        await ends_well(running)
