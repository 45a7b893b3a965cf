"""Decisions to start a second: the queue of a pool plans, gives slots and writes orders, which the relay brings to the
bus, against the same rows and messages written and sent bare.

Both write into a PostgreSQL and a NATS of their own. A decision counts when its order is in the bucket.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import asyncpg

from deploy.local.servers.nats import NatsServer
from libs.bus import Bus, BusSettings, Outbound, connect_bus
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.migrate import upgrade
from libs.db.relay import relay_outbox
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.ids import UserId
from libs.run_until_first_exits import end
from services.api.access.principal import Principal
from services.api.actions.experiments.create import prepare_experiment, store_experiment
from services.api.wire.experiments.experiments import CreateExperimentRequest
from services.scheduler.experiments.reconciler import ExperimentReconciler
from services.scheduler.queue.pool_queue import PoolQueue
from services.scheduler.settings import QueueSettings
from tests.bench.databases import empty_database
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.harness.app import new_app

POOL: Final = "default"
STARTS: Final = 1000
ROUNDS: Final = 3
AT_ONCE: Final = 100
NODES: Final = 1000
SLOTS: Final = 8
CONFIG: Final = f"""
name: bench
entrypoint: "true"
hyperparameters: {{lr: {{type: double, minval: 0, maxval: 1}}}}
searcher: {{name: random, metric: loss, max_trials: {STARTS}, max_concurrent_trials: {STARTS}}}
resources: {{slots_per_trial: 1}}
max_restarts: 0
"""
_CLUSTER: Final = ClusterConfig(checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"})
_NODES: Final = tuple(
    NodeCapacity(name=f"node{number:04}", devices=tuple(Device(id=f"{slot:03}") for slot in range(SLOTS)))
    for number in range(NODES)
)
_ALL_ON_THE_BUS: Final = """
    SELECT NOT EXISTS (SELECT FROM allocations WHERE assigned_at IS NULL) AND NOT EXISTS (SELECT FROM outbox)
"""
_START: Final = """
    UPDATE bench_allocations a SET state = g.state, assigned_at = g.assigned_at, priority = g.priority,
           places = g.places, ports = g.ports, wait_reason = g.wait_reason
    FROM bench_given g WHERE a.allocation_id = g.allocation_id AND a.allocation_id = ANY($1)
"""
_TELL: Final = (
    "INSERT INTO bench_outbox (subject, headers, payload) SELECT * FROM unnest($1::text[], $2::jsonb[], $3::bytea[])"
)


async def measure(system: BenchSystem) -> list[Result]:
    decided, bare = [], []
    with tempfile.TemporaryDirectory(prefix="resolute-deciding-") as folder:
        server = NatsServer(Path(folder), dies_with_parent=True)
        server.start()
        try:
            async with (
                empty_database(system) as url,
                connect_bus(BusSettings(url=server.url)) as bus,
            ):
                await upgrade(url)
                async with connect_database(DatabaseSettings(url=url, pool_size=4)) as db:
                    for _ in range(ROUNDS):
                        taken, messages = await _decide(db, url, bus)
                        decided.append(STARTS / taken)
                        bare.append(STARTS / await _bare(url, bus, messages))
        finally:
            server.stop()
    return [
        Result(
            name="decisions to start, with their orders",
            value=max(decided),
            unit="starts/s",
            baseline=max(bare),
            goal=0.5,
            better="higher",
        )
    ]


async def _decide(db: Database, url: str, bus: Bus) -> tuple[float, list[Outbound]]:
    """Seconds until the orders of as many trials are on the bus, and what was sent, in order."""
    await _request(db)
    connection = await asyncpg.connect(url)
    capacity = PoolCapacity(pool=POOL, backend="process", nodes=_NODES)
    (pool,) = _CLUSTER.resource_pools
    queue = PoolQueue(
        db=db,
        clock=SystemClock(),
        cluster=_CLUSTER,
        pool=pool,
        capacity=lambda _pool: capacity,
        ended=lambda _row: None,
        settings=QueueSettings(),
    )
    recorder = _Recorder(bus)
    began = time.perf_counter()
    acting = [asyncio.create_task(queue.run()), asyncio.create_task(relay_outbox(db, recorder))]
    try:
        while not await connection.fetchval(_ALL_ON_THE_BUS):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.01)
        taken = time.perf_counter() - began
    finally:
        await end(*acting)
    # What is bare begins with the same rows, and the next round with none that run.
    await connection.execute("DROP TABLE IF EXISTS bench_allocations, bench_given, bench_outbox")
    await connection.execute("CREATE TABLE bench_given AS SELECT * FROM allocations WHERE assigned_at IS NOT NULL")
    await connection.execute("CREATE TABLE bench_allocations (LIKE allocations INCLUDING ALL)")
    await connection.execute("INSERT INTO bench_allocations SELECT * FROM bench_given")
    await connection.execute(
        "UPDATE bench_allocations SET state = 'PENDING', assigned_at = NULL, places = '[]', ports = '{}'"
    )
    await connection.execute("CREATE TABLE bench_outbox (LIKE outbox INCLUDING ALL)")
    await connection.execute("UPDATE allocations SET released_at = now(), state = 'TERMINATED'")
    await connection.close()
    return taken, recorder.sent


class _Recorder:
    """The bus, which remembers what is sent through it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.sent: list[Outbound] = []

    async def publish(self, subject: str, payload: bytes, **more: Any) -> object:
        self.sent.append(Outbound(subject, payload, more.get("msg_id"), more.get("headers") or {}))
        return await self._bus.publish(subject, payload, **more)

    async def publish_ahead(self, messages: Sequence[Outbound]) -> int:
        done = await self._bus.publish_ahead(messages)
        self.sent += messages[:done]
        return done

    def fits(self, message: Outbound) -> bool:
        return self._bus.fits(message)


async def _request(db: Database) -> None:
    """As many trials that wait for a slot each."""
    nobody_listens: Any = None
    app = new_app(db, nobody_listens, SystemClock(), cluster=_CLUSTER)
    owner = Principal(user_id=UserId(2), username="determined")
    now = datetime.now(UTC)
    request = CreateExperimentRequest(config=CONFIG, activate=True)
    new = await prepare_experiment(app, request, require=lambda _project: None, now=now)
    experiment = (await store_experiment(app, new, owner, now=now)).id
    engine = ExperimentReconciler(db=db, clock=SystemClock(), cluster=_CLUSTER)
    await engine.reconcile(experiment)
    async with db.transaction() as connection:
        await connection.exec_driver_sql("DELETE FROM outbox")


async def _bare(url: str, bus: Bus, messages: Sequence[Outbound]) -> float:
    """Seconds for batches of the same updates and outbox rows, each sent while the next one is written."""
    writer, sender = await asyncpg.connect(url), await asyncpg.connect(url)
    ids = [row["allocation_id"] for row in await writer.fetch("SELECT allocation_id FROM bench_given ORDER BY 1")]
    sent_at_once = len(messages) // (STARTS // AT_ONCE)
    began = time.perf_counter()
    sending: asyncio.Task[None] | None = None
    for number in range(STARTS // AT_ONCE):
        part = messages[number * sent_at_once : (number + 1) * sent_at_once]
        async with writer.transaction():
            await writer.execute(_START, ids[number * AT_ONCE : (number + 1) * AT_ONCE])
            await writer.execute(
                _TELL, [one.subject for one in part], ["{}" for _ in part], [one.payload for one in part]
            )
        if sending is not None:
            await sending
        sending = asyncio.create_task(_send(sender, bus, part, number))
    if sending is not None:
        await sending
    taken = time.perf_counter() - began
    await writer.close()
    await sender.close()
    return taken


async def _send(connection: Any, bus: Bus, messages: Sequence[Outbound], number: int) -> None:
    done = 0
    while done < len(messages):
        rest = [
            Outbound(one.subject, one.payload, f"bare {time.time_ns()} {number} {index}", one.headers)
            for index, one in enumerate(messages[done:], done)
        ]
        done += await bus.publish_ahead(rest)
    await connection.execute(
        "DELETE FROM bench_outbox WHERE id IN (SELECT id FROM bench_outbox ORDER BY id LIMIT $1)", len(messages)
    )
