"""Fixtures that any test may ask for. Servers are started by the first test that needs one, once per pytest worker."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import structlog
from hypothesis import HealthCheck, settings

from deploy.local.servers.postgres import TEST_SETTINGS
from libs.bus import Bus, BusSettings, connect_bus
from tests.harness import FakeClock, NatsServer, PostgresServer
from tests.harness.client import Client
from tests.harness.containers import ContainerNats, ContainerPostgres, containers_wanted
from tests.harness.looking import Looking
from tests.harness.services_role import ROLE, as_services
from tests.harness.streams import wipe
from tests.harness.whole_system import WholeSystem, running_system

NEEDS_CLUSTER = (
    "needs a cluster: `kind create cluster --kubeconfig /tmp/kc`, then `make test-cluster KUBECONFIG=/tmp/kc`; or "
    "`make test-cluster KUBECONFIG=$(KUBE_VERSION=1.33 tests/cluster/kube/cluster up --nodes 8)`"
)
NEEDS_KUBELET = (
    "needs nodes that run containers, and an image that they have, with determined==0.38.1 and numpy: "
    "`export KUBE_VERSION=1.33`, `tests/cluster/kube/cluster images`, then "
    "`make test-kubelet KUBECONFIG=$(tests/cluster/kube/cluster up --kubelet) "
    "RESOLUTE_TEST_IMAGE=local/det-env:1`"
)

NEEDS_INSTALLATION = (
    "needs a cluster of its own, whose nodes run containers and have the images of the services: "
    "`export KUBE_VERSION=1.33`, `tests/cluster/kube/cluster images`, `tests/cluster/kube/cluster up --kubelet`, "
    "`tests/cluster/kube/cluster service-images`, then `make test-installation KUBECONFIG=/tmp/kube-run/kubeconfig "
    "RESOLUTE_TEST_IMAGE=local/det-env:1`"
)

# How long an example takes says more about the other work of a machine than about the code: speed is measured in
# tests/bench, as ratios of one run. Examples are the same every time, unless somebody asks for others.
settings.register_profile(
    "noisy machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="RESOLUTE_TEST_SEED" not in os.environ,
)
settings.load_profile("noisy machine")

# Modules and tests stay until the end, and there are ten thousand of them: garbage is neither looked for while they are
# collected nor ever again among them.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def server_directory() -> Iterator[Path]:
    """A folder for servers. Not pytest's own, which the unprivileged user of PostgreSQL may not enter."""
    directory = Path(tempfile.mkdtemp(prefix="resolute-test-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def nats_server(server_directory: Path) -> Iterator[NatsServer | ContainerNats]:
    """NATS with JetStream. Shared by tests: kill and restart it, but leave it running; ``bus`` wipes its streams."""
    server: NatsServer | ContainerNats = (
        ContainerNats() if containers_wanted() else NatsServer(server_directory / "nats", dies_with_parent=True)
    )
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def own_nats_server(server_directory: Path) -> Iterator[NatsServer]:
    """A NATS server for one test, to be killed, emptied and stopped at will."""
    directory = server_directory / f"nats-{uuid4().hex[:8]}"
    server = NatsServer(directory, dies_with_parent=True)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
async def bus_settings(nats_server: NatsServer | ContainerNats) -> BusSettings:
    """Settings for a server without any stream: whoever connects next creates them."""
    settings = BusSettings(
        url=nats_server.url,
        name="test",
        connect_timeout_s=10,
        # The disk is shared with all other tests, and can take longer for a write than what services wait.
        request_timeout_s=20,
        logs_max_bytes=2**28,
    )
    await wipe(settings.url)
    return settings


@pytest.fixture
async def bus(bus_settings: BusSettings) -> AsyncIterator[Bus]:
    """A connection with fresh, empty streams and buckets."""
    async with connect_bus(bus_settings) as connected:
        yield connected


@pytest.fixture(scope="session")
def postgres_server(server_directory: Path) -> Iterator[PostgresServer | ContainerPostgres]:
    """PostgreSQL. Shared by tests: kill and restart it, but leave it running."""
    server: PostgresServer | ContainerPostgres = (
        ContainerPostgres()
        if containers_wanted()
        else PostgresServer(server_directory / "postgres", settings=TEST_SETTINGS, dies_with_parent=True)
    )
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def database_template(postgres_server: PostgresServer | ContainerPostgres) -> str:
    """Name of a database with the newest schema and nothing in it, which belongs to the role of the services."""
    from libs.db.migrate import upgrade
    from libs.db.services_role.role import provide_role

    name = "template_migrated"
    postgres_server.execute(f"CREATE DATABASE {name}")
    failures: list[BaseException] = []

    def migrate() -> None:
        try:
            asyncio.run(upgrade(asyncio.run(provide_role(postgres_server.url(name), ROLE))))
        except BaseException as error:
            failures.append(error)

    # In a thread, because the tests that share this fixture have an event loop running in this one.
    thread = threading.Thread(target=migrate)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return name


@pytest.fixture(scope="module")
def database_url(postgres_server: PostgresServer | ContainerPostgres, database_template: str) -> Iterator[str]:
    """A migrated, empty database for the tests of one module, as services connect to it."""
    name = f"test_{uuid4().hex[:12]}"
    postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE {database_template}")
    yield as_services(postgres_server.url(name))
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_database_url(postgres_server: PostgresServer | ContainerPostgres) -> Iterator[str]:
    """A database without any table, for one test."""
    name = f"empty_{uuid4().hex[:12]}"
    postgres_server.execute(f"CREATE DATABASE {name}")
    yield postgres_server.url(name)
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def whole_system() -> Iterator[WholeSystem]:
    """Everything, as ``resolute up`` starts it. Shared by the tests of a worker: look, but kill nothing."""
    with running_system(slots=8) as system:
        yield system


@pytest.fixture(scope="session")
def det(whole_system: WholeSystem) -> Client:
    """The unmodified client, logged in as ``determined``."""
    return whole_system.det(forked=True)


@pytest.fixture(scope="session")
def look(whole_system: WholeSystem) -> Iterator[Looking]:
    """What tests wait for; a request is a hundred times cheaper than a ``det``."""
    with whole_system.http() as http:
        yield Looking(http)


@pytest.fixture
def loggers() -> Iterator[None]:
    """What is logged afterwards goes where it went before: for tests of what configures logging."""
    root = logging.getLogger()
    handlers, level, configuration = root.handlers[:], root.level, structlog.get_config()
    yield
    root.handlers[:], root.level = handlers, level
    structlog.configure(**configuration)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
def kubeconfig() -> Path:
    """The cluster to test against."""
    return Path(os.environ["KUBECONFIG"])


@pytest.fixture(scope="session")
def task_image() -> str:
    """An image that the nodes of the cluster have, with Python, ``determined`` and numpy."""
    return os.environ["RESOLUTE_TEST_IMAGE"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a cluster, saying how to get one, before any fixture starts a server for it."""
    if item.get_closest_marker("installation") and not {"KUBECONFIG", "RESOLUTE_TEST_IMAGE"} <= os.environ.keys():
        pytest.skip(NEEDS_INSTALLATION)
    if item.get_closest_marker("cluster") and not os.environ.get("KUBECONFIG"):
        pytest.skip(NEEDS_CLUSTER)
    if item.get_closest_marker("kubelet") and not os.environ.get("RESOLUTE_TEST_IMAGE"):
        pytest.skip(NEEDS_KUBELET)
