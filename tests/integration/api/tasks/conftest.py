"""A database, and one replica of the api on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from libs.bus import Bus
from libs.clock import SystemClock
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from services.api.metrics.writer import ToRows
from tests.harness import FakeClock
from tests.harness.app import always
from tests.integration.api.tasks.service import Replica, Run, new_run, replica


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, connect_timeout_s=10, pool_size=20)) as database:
        yield database


@pytest.fixture
def to_rows() -> ToRows:
    """Whether summaries of metrics are put into rows; tests of both forms are parametrized with it."""
    return always


@pytest.fixture
async def api(db: Database, bus: Bus, clock: FakeClock, to_rows: ToRows) -> AsyncIterator[Replica]:
    """A replica whose time stands still, without a relay: what it announces stays in the outbox."""
    async with replica(db, bus, clock, to_rows=to_rows) as running:
        yield running


@pytest.fixture
async def live_api(db: Database, bus: Bus, to_rows: ToRows) -> AsyncIterator[Replica]:
    """A replica as it runs in production."""
    async with replica(db, bus, SystemClock(), relay=True, to_rows=to_rows) as running:
        yield running


@pytest.fixture
async def run(db: Database) -> Run:
    return await new_run(db)


@pytest.fixture
async def client(api: Replica, run: Run) -> AsyncIterator[httpx.AsyncClient]:
    """The training code of ``run``."""
    async with api.client(headers=run.headers) as client:
        yield client


@pytest.fixture
async def owner(api: Replica, run: Run) -> AsyncIterator[httpx.AsyncClient]:
    """The owner of ``run``, who may ask about what is not the task's own."""
    async with api.client(headers=run.user_headers) as owner:
        yield owner
