"""Launchers of other clusters reach the bus over TLS, and trust the certificate that they were given and no other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from deploy import nats_configuration
from libs.bus import Bus, BusSettings, connect_bus, connection
from libs.errors import Unavailable
from tests.harness import NatsServer
from tests.harness.certificates import Authority, Pair, self_signed
from tests.harness.waiting import eventually
from tests.integration.libs.bus import test_permissions as checks
from tests.integration.libs.bus.users import OURS, PASSWORDS, THEIRS, launcher_settings, services_settings


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return self_signed(tmp_path_factory.mktemp("bus"))


@pytest.fixture(scope="module")
def encrypted(server_directory: Path, pair: Pair) -> Iterator[NatsServer]:
    tls = {"cert_file": str(pair.cert), "key_file": str(pair.key)}
    config = f"{nats_configuration.authorization(PASSWORDS, (OURS, THEIRS))}tls: {json.dumps(tls)}\n"
    server = NatsServer(server_directory / uuid4().hex[:8], extra_config=config, dies_with_parent=True)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def over_tls(server: NatsServer, certificate: Path, *, pool: str | None = None) -> BusSettings:
    url = server.url.replace("nats://", "tls://")
    more = {"url": url, "ca_file": str(certificate), "connect_timeout_s": 10.0}
    return services_settings(server, **more) if pool is None else launcher_settings(server, pool, **more)


@pytest.fixture
async def services(encrypted: NatsServer, pair: Pair) -> AsyncIterator[Bus]:
    async with connect_bus(over_tls(encrypted, pair.cert)) as bus:
        yield bus


@pytest.fixture
async def launcher(encrypted: NatsServer, pair: Pair, services: Bus) -> AsyncIterator[Bus]:
    async with connect_bus(over_tls(encrypted, pair.cert, pool=OURS)) as bus:
        yield bus


async def test_it_does_what_a_launcher_does(services: Bus, launcher: Bus) -> None:
    await checks.test_a_launcher_watches_the_orders_of_its_pool(services, launcher)
    await checks.test_a_launcher_reports_and_speaks_for_its_pool(services, launcher)
    await checks.test_a_launcher_answers_what_it_is_asked(services, launcher)


async def test_another_authority_is_trusted_as_soon_as_the_file_has_it(
    server_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ERRORS_LOGGED_EVERY_S", 0.1)
    first, second = Authority("the first"), Authority("the second")
    ca = tmp_path / "ca.crt"
    ca.write_bytes(first.pem)
    pair = first.issue(tmp_path)
    tls = {"cert_file": str(pair.cert), "key_file": str(pair.key)}
    config = f"{nats_configuration.authorization(PASSWORDS, (OURS, THEIRS))}tls: {json.dumps(tls)}\n"
    server = NatsServer(server_directory / uuid4().hex[:8], extra_config=config, dies_with_parent=True)
    server.start()
    try:
        async with connect_bus(over_tls(server, ca)) as bus:
            server.stop()
            second.issue(tmp_path)
            with capture_logs() as logged:
                server.start()
                await eventually(lambda: any("CERTIFICATE_VERIFY_FAILED" in line.get("error", "") for line in logged))
                ca.write_bytes(second.pem)
                await eventually(lambda: bus.is_connected)
    finally:
        server.stop()


async def test_another_certificate_is_not_trusted(encrypted: NatsServer, tmp_path: Path) -> None:
    other = self_signed(tmp_path)
    settings = launcher_settings(
        encrypted,
        OURS,
        url=encrypted.url.replace("nats://", "tls://"),
        ca_file=str(other.cert),
        connect_timeout_s=1.0,
    )
    with pytest.raises(Unavailable):
        async with connect_bus(settings):
            pass
