"""What the tests of the platform put around an api: a cluster, capacity, and rows that other services would write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import select, update

from libs.bus import BusSettings, connect_bus
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Connection, Database, connect_database
from libs.db.tables.tasks import allocations, jobs
from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.observations import ObservedPod
from libs.ids import new_uuid
from tests.builders import insert_allocation, insert_experiment, insert_job, insert_task
from tests.harness.api import ApiProcess
from tests.harness.loop_thread import LoopThread
from tests.harness.streams import wipe

CLUSTER = """
cluster_name: testing
resource_manager:
  type: process
  cluster_name: here
  scheduler: {type: priority, default_priority: 42}
  default_compute_resource_pool: gpus
  default_aux_resource_pool: cpus
resource_pools:
  - {pool_name: gpus, description: the large one}
  - {pool_name: cpus, max_aux_containers_per_agent: 7}
checkpoint_storage: {type: s3, bucket: b, access_key: AKIA, secret_key: very-secret}
task_container_defaults:
  registry_auth: {username: me, password: hidden-too}
"""
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class World:
    directory: Path
    database_url: str
    bus_url: str
    settings: Mapping[str, Any]
    loop: LoopThread
    database: Database
    """For what a test changes behind the back of the api; work on it is for ``loop``."""

    def run_async(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of ``work``."""
        return self.loop.run(work)

    def api(self, name: str, **settings: Any) -> ApiProcess:
        """A replica, not yet started; ``settings`` in addition to those of all."""
        return ApiProcess(
            self.directory / name,
            database_url=self.database_url,
            bus_url=self.bus_url,
            settings={**self.settings, **settings},
        )

    def in_database(self, work: Callable[[Connection], Awaitable[Any]]) -> Any:
        """The result of ``work`` in one transaction."""

        async def run() -> Any:
            async with self.database.transaction() as connection:
                return await work(connection)

        return self.run_async(run())

    def publish(self, capacity: PoolCapacity) -> None:
        """What a launcher says of its pool, now unless it says when."""
        if not capacity.seen_at:
            capacity = msgspec.structs.replace(capacity, seen_at=datetime.now(UTC).isoformat())

        async def run() -> None:
            async with connect_bus(BusSettings(url=self.bus_url, name="launcher")) as bus:
                key = subjects.capacity_key(capacity.pool)
                await bus.bucket(subjects.CAPACITY_BUCKET).put(key, msgspec.json.encode(capacity))

        self.run_async(run())


@contextmanager
def new_world(
    directory: Path, *, database_url: str, bus_url: str, cluster: str, settings: Mapping[str, Any] | None = None
) -> Iterator[World]:
    """An empty one, without anything on the bus.

    cluster   text of the configuration of the cluster
    settings  of all replicas, in addition to it
    """
    cluster_path = directory / "cluster.yaml"
    cluster_path.write_text(cluster)
    with LoopThread() as loop:
        loop.run(wipe(bus_url))
        # Kept open: a new one each time would have to log in, and to compile every statement anew.
        connecting = connect_database(DatabaseSettings(url=database_url, pool_size=5))
        database = loop.run(connecting.__aenter__())
        try:
            yield World(
                directory=directory,
                database_url=database_url,
                bus_url=bus_url,
                settings={"cluster_config": str(cluster_path), **(settings or {})},
                loop=loop,
                database=database,
            )
        finally:
            loop.run(connecting.__aexit__(None, None, None))


def two_nodes(*, pod: str = "pod-0", allocation: str | None = None) -> PoolCapacity:
    """The pool ``gpus``: node ``a`` with four slots, two of them held by ``allocation``; node ``b`` with two."""
    held = {"allocation": allocation, "container": pod} if allocation else {}
    return PoolCapacity(
        pool="gpus",
        backend="process",
        slot_type="cuda",
        max_slots_per_pod=4,
        nodes=(
            NodeCapacity(
                name="a",
                addresses=("10.0.0.1",),
                registered_at="2029-12-31T00:00:00Z",
                slot_type="cuda",
                devices=tuple(Device(id=f"{n:03}", **(held if n < 2 else {})) for n in range(4)),
                aux_containers=("9.1",),
            ),
            NodeCapacity(
                name="b",
                addresses=("10.0.0.2",),
                registered_at="2029-12-30T00:00:00Z",
                slot_type="cuda",
                devices=(Device(id="000"), Device(id="001", container="stranger")),
            ),
        ),
    )


class Rows:
    """Writes what the scheduler would have written."""

    def __init__(self, world: World) -> None:
        self._world = world

    def experiment(
        self, *, name: str = "mnist", state: str = "ACTIVE", pool: str = "gpus", priority: int = 42, minutes: int = 0
    ) -> tuple[int, str]:
        """Id and job id of an experiment submitted ``minutes`` after noon."""

        async def work(connection: Connection) -> tuple[int, str]:
            at = NOW + timedelta(minutes=minutes)
            config = {
                "name": name,
                "resources": {
                    "slots_per_trial": 2,
                    "priority": priority,
                    "weight": 1,
                    "resource_pool": pool,
                    "max_slots": None,
                },
                "checkpoint_storage": {"type": "s3", "bucket": "b"},
            }
            job_id = await insert_job(connection, pool=pool, priority=priority, submitted_at=at)
            row = {"state": state, "config": config, "job_id": job_id, "start_time": at, "progress": 0.5}
            return await insert_experiment(connection, **row), job_id

        found: tuple[int, str] = self._world.in_database(work)
        return found

    def task(self, *, task_type: str = "NOTEBOOK", priority: int | None = None) -> tuple[str, str]:
        """Id and job id of a task that is no trial."""

        async def work(connection: Connection) -> tuple[str, str]:
            task_id = new_uuid()
            job_id = await insert_job(
                connection, job_type=task_type, owner_id=2, pool="gpus", priority=priority, submitted_at=NOW
            )
            ports = [{"service_id": task_id, "port": 8888, "proxy_tcp": False}]
            spec = {"description": "nb", "proxy_ports": ports}
            row = {"task_id": task_id, "task_type": task_type, "job_id": job_id, "owner_id": 2, "spec": spec}
            return await insert_task(connection, start_time=NOW, **row), job_id

        found: tuple[str, str] = self._world.in_database(work)
        return found

    def priority_of(self, job_id: str) -> int:
        async def work(connection: Connection) -> int:
            return (await connection.execute(select(jobs.c.priority).where(jobs.c.job_id == job_id))).scalar_one()  # type: ignore[no-any-return]

        found: int = self._world.in_database(work)
        return found

    def allocation(
        self,
        *,
        job_id: str,
        task_id: str | None = None,
        slots: int = 2,
        assigned: bool = True,
        state: str = "RUNNING",
        started: bool = True,
        pods: tuple[ObservedPod, ...] = (),
        name: str = "Trial 1 (Experiment 1)",
    ) -> str:
        """Id of a live allocation; without a task it gets one of a trial. ``started``: its pods have their places."""

        async def work(connection: Connection) -> str:
            trial_task = {"task_id": f"1.{new_uuid()}", "job_id": job_id, "start_time": NOW}
            of_task = task_id or await insert_task(connection, **trial_task)
            row = {
                "job_id": job_id,
                "name": name,
                "pool": await connection.scalar(select(jobs.c.pool).where(jobs.c.job_id == job_id)),
                "slots": slots,
                "preemptible": task_id is None,
                "state": state if assigned else "PENDING",
                "requested_at": NOW,
                "assigned_at": NOW + timedelta(seconds=30) if assigned else None,
                "start_time": NOW if assigned and started else None,
                "pods": msgspec.to_builtins(pods),
            }
            return await insert_allocation(connection, task_id=of_task, **row)

        found: str = self._world.in_database(work)
        return found

    def start(self, job_id: str) -> None:
        """All pods of the allocations of a job have been seen where they run."""
        started = update(allocations).where(allocations.c.job_id == job_id).values(state="PULLING", start_time=NOW)
        self._world.in_database(lambda connection: connection.execute(started))
