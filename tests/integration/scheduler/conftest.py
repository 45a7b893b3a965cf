from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from libs.bus import Bus
from libs.cluster.config import ClusterConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.reused_database import ReusedDatabase
from tests.integration.scheduler.world import World


@pytest.fixture(scope="session")
def reused_database(
    postgres_server: PostgresServer | ContainerPostgres, database_template: str
) -> Iterator[ReusedDatabase]:
    database = ReusedDatabase(postgres_server, database_template)
    yield database
    database.drop()


@pytest.fixture
def own_database_url(reused_database: ReusedDatabase) -> Iterator[str]:
    """A migrated, empty database for one test: a scheduler takes an interest in everything that it finds."""
    yield reused_database.url
    reused_database.empty()


@pytest.fixture
async def world(own_database_url: str, bus: Bus) -> AsyncIterator[World]:
    async with connect_database(DatabaseSettings(url=own_database_url)) as db:
        yield World(db, bus, ClusterConfig())
