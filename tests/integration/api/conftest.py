"""An api with its database and bus, and the client of an administrator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

import httpx
import pytest
from aiohttp import ClientSession

from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.containers import ContainerNats
from tests.harness.det import Det
from tests.harness.loop_thread import LoopThread
from tests.integration.api.world import CLUSTER, Rows, World, new_world

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, run in a thread: fixtures may be asked for by tests that have an event loop."""
    with LoopThread() as loop:
        return loop.run(work)


@pytest.fixture(scope="module")
def world(
    database_url: str, nats_server: NatsServer | ContainerNats, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("api")
    with new_world(directory, database_url=database_url, bus_url=nats_server.url, cluster=CLUSTER) as world:
        yield world


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
def token(api: ApiProcess) -> str:
    """Of ``determined``."""
    return api.token("determined")


@pytest.fixture
async def session(api: ApiProcess, token: str) -> AsyncIterator[ClientSession]:
    """For streams and websockets."""
    async with ClientSession(base_url=api.url, headers={"Authorization": f"Bearer {token}"}) as session:
        yield session


@pytest.fixture(scope="module")
def det(api: ApiProcess, tmp_path_factory: pytest.TempPathFactory) -> Det:
    """The client of somebody who has logged in as administrator."""
    det = Det(url=api.url, home=tmp_path_factory.mktemp("det"))
    det("user", "login", "admin", answers=[""])
    return det


@pytest.fixture(scope="module")
def rows(world: World) -> Rows:
    return Rows(world)
