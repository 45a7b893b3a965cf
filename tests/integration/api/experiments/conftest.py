"""An api with the routes of experiments, on real servers, without a scheduler behind it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
import uvicorn
from sqlalchemy import select

from libs.bus import BusSettings, connect_bus
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.tables.users import users as users_table
from services.api.app import App
from services.api.bootstrap import bootstrap
from services.api.http.application import build_application
from services.api.routes.table import all_routes
from tests.builders import insert_user_session
from tests.harness import NatsServer
from tests.harness.app import new_app
from tests.harness.containers import ContainerNats
from tests.harness.no_tls import NO_TLS
from tests.integration.api.experiments.rows import Rows


@dataclass
class Api:
    """A running api and the ways in.

    client, admin  HTTP as user ``determined`` and as user ``admin``
    files          the directory that is ``/checkpoints`` in configurations
    """

    url: str
    app: App
    client: httpx.AsyncClient
    admin: httpx.AsyncClient
    rows: Rows
    files: Path

    async def ok(self, method: str, path: str, **options: Any) -> Any:
        """The answer to a request that has to succeed."""
        response = await self.client.request(method, path, **options)
        assert response.status_code == 200, response.text
        return response.json()

    async def refused(self, status: int, method: str, path: str, **options: Any) -> str:
        """The message of a request that has to fail with ``status``."""
        response = await self.client.request(method, path, **options)
        assert response.status_code == status, response.text
        body = response.json()
        return str(body["error"]["error"] if "error" in body else body["message"])

    async def create(self, config: str | None = None, **fields: Any) -> int:
        """The id of a new experiment."""
        body = {"config": CONFIG if config is None else config, **fields}
        created = await self.ok("POST", "/api/v1/experiments", json=body)
        return int(created["experiment"]["id"])

    async def create_empty(self, config: str | None = None, **fields: Any) -> int:
        """The id of a new experiment without the trials that its search begins with, for a test with its own."""
        experiment_id = await self.create(config, **fields)
        await self.rows.forget_trials(experiment_id)
        return experiment_id


CONFIG = """
name: digits
description: reads digits
labels: [one, two]
entrypoint: python3 train.py
hyperparameters: {lr: {type: double, minval: 0.1, maxval: 1.0}, layers: 2}
searcher: {name: random, metric: loss, max_trials: 4, smaller_is_better: true}
max_restarts: 2
"""

CLUSTER = ClusterConfig(
    cluster_name="test",
    checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints", "storage_path": "kept"},
    resource_pools=(
        PoolConfig(pool_name="default"),
        PoolConfig(pool_name="other"),
        PoolConfig(pool_name="limited", default_time_limit="1h", max_time_limit="2h"),
    ),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(
    database_url: str, nats_server: NatsServer | ContainerNats, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Api]:
    """One for all tests of a module: they make their own experiments, and look at nothing else."""
    clock, files = SystemClock(), tmp_path_factory.mktemp("checkpoints")
    async with (
        connect_bus(BusSettings(url=nats_server.url, name="test", connect_timeout_s=10, logs_max_bytes=2**28)) as bus,
        connect_database(DatabaseSettings(url=database_url, connect_timeout_s=10)) as db,
    ):
        app = new_app(
            db,
            bus,
            clock,
            cluster=CLUSTER,
            cluster_id=await bootstrap(db, clock, CLUSTER),
            checkpoint_roots={"/checkpoints": str(files)},
        )
        async with (
            serving(app) as url,
            logged_in(url, db, "determined") as client,
            logged_in(url, db, "admin") as admin,
        ):
            yield Api(url=url, app=app, client=client, admin=admin, rows=Rows(db), files=files)


@asynccontextmanager
async def serving(app: App) -> AsyncIterator[str]:
    """The address of the api, in the loop of the test."""
    application = build_application(all_routes(), app, app.sessions.authenticate)
    server = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        serve = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serve


@asynccontextmanager
async def logged_in(url: str, db: Database, username: str) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP as a user, with a session that nobody had to hash a password for."""
    expiry = datetime.now(UTC) + timedelta(hours=1)
    async with db.transaction() as connection:
        user_id = await connection.scalar(select(users_table.c.id).where(users_table.c.username == username))
        token = await insert_user_session(connection, user_id=user_id, expires_at=expiry)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, timeout=120, headers=headers, verify=NO_TLS) as client:
        yield client
