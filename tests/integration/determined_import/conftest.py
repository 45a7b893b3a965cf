"""An old installation with rows of every kind, and the new one that it is imported into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from libs.db.connecting.settings import asyncpg_url
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.determined.rows import populate
from tests.harness.determined.schema import create_schema
from tests.harness.services_role import as_services
from tests.integration.api.conftest import run_async


async def make_old(url: str, storage: Path) -> None:
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        await create_schema(connection)
        await populate(connection, storage)
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the checkpoints of the old installation are."""
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def old_url(postgres_server: PostgresServer | ContainerPostgres, storage: Path) -> Iterator[str]:
    name = f"old_{uuid4().hex[:12]}"
    postgres_server.execute(f"CREATE DATABASE {name}")
    run_async(make_old(postgres_server.url(name), storage))
    yield postgres_server.url(name)
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def new_url(postgres_server: PostgresServer | ContainerPostgres, database_template: str) -> Iterator[str]:
    """A migrated, empty database for one test, as services connect to it."""
    name = f"new_{uuid4().hex[:12]}"
    postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE {database_template}")
    yield as_services(postgres_server.url(name))
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")
