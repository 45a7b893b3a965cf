"""Replicas of the api that training code talks to, and rows for them to work on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import uvicorn
from msgspec import Struct
from prometheus_client import CollectorRegistry
from sqlalchemy import insert, select, text, update

from libs.bus import Bus
from libs.capacity import CapacityView
from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.engine import Database
from libs.db.relay import relay_outbox
from libs.db.tables.cluster import outbox
from libs.db.tables.experiments import experiments, model_definitions
from libs.db.tables.tasks import allocations, tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.db.tables.users import allocation_sessions, user_sessions
from libs.tokens import digest, new_token
from services.api.access.sessions import Sessions
from services.api.app import App
from services.api.http.application import build_application
from services.api.master_log import MasterLog
from services.api.metrics.writer import MetricsSettings, MetricsWriter
from services.api.routes.table import all_routes
from services.api.waits.hub import Hub

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
        return httpx.AsyncClient(base_url=self.url, timeout=60, **options)


@asynccontextmanager
async def replica(
    db: Database,
    bus: Bus,
    clock: Clock,
    *,
    relay: bool = False,
    settings: MetricsSettings | None = None,
    narrow_user_tokens: bool = False,
) -> AsyncIterator[Replica]:
    """Serve until the block ends. One of several has to ``relay`` the outbox, or nobody hears of anything."""
    hub, writer = Hub(), MetricsWriter(db=db, settings=settings)
    app = App(
        db=db,
        bus=bus,
        clock=clock,
        cluster=ClusterConfig(),
        cluster_id="cluster",
        sessions=Sessions(db=db, clock=clock, narrow_user_tokens=narrow_user_tokens),
        capacity=CapacityView(),
        hub=hub,
        metrics_writer=writer,
        master_log=MasterLog(),
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(hub.listening(bus))
        loops = [asyncio.create_task(writer.run())]
        if relay:
            loops.append(asyncio.create_task(relay_outbox(db, bus)))
        stack.push_async_callback(_stop, loops)
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(
                build_application(all_routes(), app, app.sessions.authenticate, registry=CollectorRegistry()),
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
    values = {
        "state": state,
        "config": config or CONFIG,
        "original_config": "",
        "owner_id": owner,
        "project_id": 1,
        "job_id": str(uuid4()),
        "unmanaged": unmanaged,
        "start_time": text("now()"),
    }
    async with db.transaction() as tx:
        ident = (await tx.execute(insert(experiments).values(values).returning(experiments.c.id))).scalar_one()
        await tx.execute(insert(model_definitions).values(experiment_id=ident, tgz=b"tgz", size_bytes=3))
    return ident


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
    task, token, task_user_token, user_token = f"{experiment}.{uuid4()}", new_token(), new_token(), new_token()
    now = text("now()")
    async with db.transaction() as tx:
        trial = (
            await tx.execute(
                insert(trials)
                .values(
                    experiment_id=experiment,
                    project_id=1,
                    request_id=task.partition(".")[2],
                    state="ACTIVE",
                    run_id=run_id,
                    start_time=now,
                )
                .returning(trials.c.id)
            )
        ).scalar_one()
        row = {"task_id": task, "task_type": "TRIAL", "job_id": "job", "owner_id": owner, "start_time": now}
        await tx.execute(insert(tasks).values(row))
        await tx.execute(insert(trial_tasks).values(trial_id=trial, position=0, task_id=task))
        values = {
            "allocation_id": f"{task}.{run_id}",
            "task_id": task,
            "job_id": "job",
            "name": f"Trial {trial} (Experiment {experiment})",
            "pool": "default",
            "slots": 1,
            "num_pods": num_pods,
            "preemptible": True,
            "state": "STARTING",
            "requested_at": now,
            **allocation,
        }
        await tx.execute(insert(allocations).values(values))
        session = {"allocation_id": f"{task}.{run_id}", "owner_id": owner, "token_hash": digest(token)}
        await tx.execute(insert(allocation_sessions).values(session))
        for kind, secret, of_task in (("TASK", task_user_token, f"{task}.{run_id}"), ("LOGIN", user_token, None)):
            login = {"user_id": owner, "token_hash": digest(secret), "token_type": kind, "allocation_id": of_task}
            await tx.execute(insert(user_sessions).values(login))
    return Run(
        experiment=experiment,
        trial=trial,
        task=task,
        allocation=f"{task}.{run_id}",
        token=token,
        task_user_token=task_user_token,
        user_token=user_token,
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
