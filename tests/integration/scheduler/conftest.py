from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from libs.bus import Bus
from libs.cluster.config import ClusterConfig
from libs.db.engine import DatabaseSettings, connect_database
from tests.harness import PostgresServer
from tests.integration.scheduler.world import World


@pytest.fixture
async def own_database_url(postgres_server: PostgresServer, database_template: str) -> AsyncIterator[str]:
    """A migrated, empty database for one test: a scheduler takes an interest in everything that it finds."""
    name = f"test_{uuid4().hex[:12]}"
    postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE {database_template}")
    yield postgres_server.url(name)
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def world(own_database_url: str, bus: Bus) -> AsyncIterator[World]:
    async with connect_database(DatabaseSettings(url=own_database_url)) as db:
        yield World(db, bus, ClusterConfig())
