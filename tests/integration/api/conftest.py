"""An api with its database and bus, and the client of an administrator."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import httpx
import pytest

from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.containers import ContainerNats
from tests.harness.det import Det
from tests.harness.streams import wipe
from tests.integration.api.world import CLUSTER, Rows, World

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, run in a thread: fixtures may be asked for by tests that have an event loop."""
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(work))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


@pytest.fixture(scope="module")
def world(
    database_url: str, nats_server: NatsServer | ContainerNats, tmp_path_factory: pytest.TempPathFactory
) -> World:
    directory = tmp_path_factory.mktemp("api")
    cluster_path = directory / "cluster.yaml"
    cluster_path.write_text(CLUSTER)
    run_async(wipe(nats_server.url))
    return World(
        directory=directory,
        database_url=database_url,
        bus_url=nats_server.url,
        settings={"cluster_config": str(cluster_path)},
        run_async=run_async,
    )


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    with world.api("first") as api:
        yield api


@pytest.fixture(scope="module")
def admin(api: ApiProcess) -> Iterator[httpx.Client]:
    with api.client() as client:
        yield client


@pytest.fixture(scope="module")
def user(api: ApiProcess) -> Iterator[httpx.Client]:
    """``determined``, who administers nothing."""
    with api.client("determined") as client:
        yield client


@pytest.fixture(scope="module")
def det(api: ApiProcess, tmp_path_factory: pytest.TempPathFactory) -> Det:
    """The client of somebody who has logged in as administrator."""
    det = Det(url=api.url, home=tmp_path_factory.mktemp("det"))
    det("user", "login", "admin", answers=[""])
    return det


@pytest.fixture(scope="module")
def rows(world: World) -> Rows:
    return Rows(world)
