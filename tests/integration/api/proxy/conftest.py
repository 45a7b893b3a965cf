"""What tests of the proxy begin with: a client without a login, a server as a task has it, and tokens of pages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from sqlalchemy import select

from libs.db.engine import Connection
from libs.db.tables.cluster import cluster
from libs.tasks.proxy_tokens import ProxyTokens
from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.integration.api.proxy.servers import http_server
from tests.integration.api.world import World


@pytest.fixture
async def stranger(api: ApiProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=api.url, timeout=30, verify=NO_TLS) as client:
        yield client


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with http_server() as port:
        yield port


@pytest.fixture(scope="module")
def tokens(world: World) -> ProxyTokens:
    async def secret(connection: Connection) -> bytes:
        return bytes((await connection.execute(select(cluster.c.proxy_secret))).scalar_one())

    return ProxyTokens(world.in_database(secret))
