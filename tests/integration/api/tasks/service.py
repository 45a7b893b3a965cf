"""Replicas of the api that training code talks to, and rows for them to work on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import uvicorn
from msgspec import Struct
from sqlalchemy import select, update

from libs.bus import Bus
from libs.clock import Clock
from libs.db.engine import Database
from libs.db.relay import relay_outbox
from libs.db.tables.cluster import outbox
from libs.db.tables.tasks import allocations
from libs.db.tables.trials import trials
from libs.ids import new_uuid
from services.api.app import App
from services.api.http.application import build_application
from services.api.metrics.writer import MetricsSettings, ToRows
from services.api.routes.table import all_routes
from tests.builders import (
    insert_allocation,
    insert_allocation_session,
    insert_experiment,
    insert_task,
    insert_trial,
    insert_user_session,
)
from tests.harness.app import always, new_app
from tests.harness.no_tls import NO_TLS

CONFIG: dict[str, Any] = {
    "name": "e",
    "max_restarts": 5,
    "searcher": {"name": "random", "metric": "loss", "smaller_is_better": True},
    "checkpoint_storage": {"type": "directory", "container_path": "/checkpoints"},
}


class Replica(Struct, frozen=True):
    """One api, listening on ``url``."""

    url: str
    app: App

    def client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=60, verify=NO_TLS, **options)


@asynccontextmanager
async def replica(
    db: Database,
    bus: Bus,
    clock: Clock,
    *,
    relay: bool = False,
    settings: MetricsSettings | None = None,
    to_rows: ToRows = always,
    narrow_user_tokens: bool = False,
) -> AsyncIterator[Replica]:
    """Serve until the block ends. One of several has to ``relay`` the outbox, or nobody hears of anything."""
    app = new_app(
        db,
        bus,
        clock,
        cluster_id="cluster",
        metrics=settings,
        to_rows=to_rows,
        narrow_user_tokens=narrow_user_tokens,
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.notifier.listening(bus))
        loops = [asyncio.create_task(app.metrics_writer.run())]
        if relay:
            loops.append(asyncio.create_task(relay_outbox(db, bus)))
        stack.push_async_callback(_stop, loops)
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(
                build_application(all_routes(), app, app.sessions.authenticate),
                log_config=None,
                lifespan="off",
                timeout_graceful_shutdown=1,
            )
        )
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield Replica(f"http://127.0.0.1:{listener.getsockname()[1]}", app)
        finally:
            server.should_exit = True
            await serving


async def _stop(loops: Sequence[asyncio.Task[None]]) -> None:
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)


class Run(Struct, frozen=True, kw_only=True):
    """A trial with a task and an allocation, and the tokens of its pods."""

    experiment: int
    trial: int
    task: str
    allocation: str
    token: str
    task_user_token: str
    user_token: str

    @property
    def headers(self) -> dict[str, str]:
        """As the harness sends them."""
        return {"Grpc-Metadata-x-allocation-token": f"Bearer {self.token}"}

    @property
    def task_user_headers(self) -> dict[str, str]:
        """As ``det`` sends them in a task."""
        return {"Authorization": f"Bearer {self.task_user_token}"}

    @property
    def user_headers(self) -> dict[str, str]:
        """As a user sends them who has logged in."""
        return {"Authorization": f"Bearer {self.user_token}"}


async def new_experiment(
    db: Database,
    *,
    state: str = "ACTIVE",
    unmanaged: bool = False,
    config: dict[str, Any] | None = None,
    owner: int = 1,
) -> int:
    values = {"state": state, "config": config or CONFIG, "owner_id": owner, "unmanaged": unmanaged}
    async with db.transaction() as tx:
        return await insert_experiment(tx, tgz=b"tgz", **values)


async def new_run(
    db: Database,
    *,
    experiment: int | None = None,
    run_id: int = 1,
    num_pods: int = 1,
    owner: int = 1,
    **allocation: Any,
) -> Run:
    """A new trial of a new experiment, unless ``experiment`` is given; further columns for its allocation."""
    experiment = await new_experiment(db, owner=owner) if experiment is None else experiment
    request_id = new_uuid()
    task = f"{experiment}.{request_id}"
    async with db.transaction() as tx:
        trial = await insert_trial(tx, experiment_id=experiment, request_id=request_id, run_id=run_id)
        await insert_task(tx, task_id=task, trial_id=trial, job_id="job", owner_id=owner)
        values = {
            "name": f"Trial {trial} (Experiment {experiment})",
            "num_pods": num_pods,
            "preemptible": True,
            "state": "STARTING",
            **allocation,
        }
        ident = await insert_allocation(tx, task_id=task, run=run_id, **values)
        return Run(
            experiment=experiment,
            trial=trial,
            task=task,
            allocation=ident,
            token=await insert_allocation_session(tx, allocation_id=ident, owner_id=owner),
            task_user_token=await insert_user_session(tx, token_type="TASK", user_id=owner, allocation_id=ident),
            user_token=await insert_user_session(tx, user_id=owner),
        )


async def row_of(db: Database, table: Any, **key: Any) -> Any:
    """The one row of a table with these values."""
    async with db.read() as connection:
        query = select(table).where(*(table.c[name] == value for name, value in key.items()))
        return (await connection.execute(query)).one()


async def rows_of(db: Database, table: Any, **key: Any) -> list[Any]:
    """The rows of a table with these values, in the order of its first column."""
    async with db.read() as connection:
        query = select(table).where(*(table.c[name] == value for name, value in key.items()))
        return list((await connection.execute(query.order_by(next(iter(table.c))))).all())


async def set_allocation(db: Database, allocation: str, **values: Any) -> None:
    async with db.transaction() as tx:
        await tx.execute(update(allocations).where(allocations.c.allocation_id == allocation).values(**values))


async def set_trial(db: Database, trial: int, **values: Any) -> None:
    async with db.transaction() as tx:
        await tx.execute(update(trials).where(trials.c.id == trial).values(**values))


async def announced(db: Database, part: str) -> list[str]:
    """Subjects in the outbox that contain ``part``; for tests without a relay."""
    return [row.subject for row in await rows_of(db, outbox) if part in row.subject]


def error_of(answer: httpx.Response) -> str:
    """The message of an error under /api/v1."""
    message: str = answer.json()["error"]["error"]
    return message
