"""Every service ends within seconds of SIGTERM: at work, and while it still waits for what it needs."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from libs.bus import BusSettings
from tests.harness import ServiceProcess, eventually

SOON_S = 15.0  # one on a machine that has nothing else to do


class Service(NamedTuple):
    name: str
    at_work: str
    """The event in its log that says that it is."""
    env: dict[str, str] = {}


SERVICES = [
    Service("api", "http.listening", {"RESOLUTE_HTTP__HOST": "127.0.0.1", "RESOLUTE_HTTP__PORT": "0"}),
    Service("scheduler", "lease.won"),
    Service("logs", "http.listening", {"RESOLUTE_INTAKE__HOST": "127.0.0.1", "RESOLUTE_INTAKE__PORT": "0"}),
    Service("launcher", "launcher.started"),
]
by_service = pytest.mark.parametrize("service", SERVICES, ids=[service.name for service in SERVICES])


def process(service: Service, directory: Path, *, database_url: str, bus_url: str) -> ServiceProcess:
    env = {"RESOLUTE_BUS__URL": bus_url, **service.env}
    if service.name == "launcher":
        env |= {"RESOLUTE_POOL": "default", "RESOLUTE_PROCESS__STATE_DIR": str(directory / "state")}
    else:
        env |= {"RESOLUTE_DATABASE__URL": database_url, "RESOLUTE_DATABASE__POOL_SIZE": "5"}
    return ServiceProcess(f"services.{service.name}.main", log_path=directory / "log", env=env)


@contextmanager
def nobody_there() -> Iterator[str]:
    """Host and port where nobody listens, nor can begin to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def check_it_ends_soon(running: ServiceProcess) -> None:
    began = time.monotonic()
    assert running.stop(grace_s=30) == 0, running.log()
    assert time.monotonic() - began < SOON_S


@by_service
async def test_it_ends_while_it_works(
    service: Service, database_url: str, bus_settings: BusSettings, tmp_path: Path
) -> None:
    with process(service, tmp_path, database_url=database_url, bus_url=bus_settings.url) as running:
        await eventually(lambda: service.at_work in running.log(), timeout_s=60, what=service.at_work)
        check_it_ends_soon(running)


@by_service
async def test_it_ends_while_it_waits_for_its_servers(service: Service, tmp_path: Path) -> None:
    with (
        nobody_there() as nobody,
        process(
            service, tmp_path, database_url=f"postgresql://postgres@{nobody}/x", bus_url=f"nats://{nobody}"
        ) as running,
    ):
        waits = "bus.error" if service.name == "launcher" else "database.waiting"
        await eventually(lambda: waits in running.log(), timeout_s=60, what=waits)
        check_it_ends_soon(running)
