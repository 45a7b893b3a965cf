"""Processor that a running system spends on one experiment, from the request to the order for its launcher.

The launcher stands still meanwhile, behind more slots than are ever asked for: what starting processes costs is another
matter. What the system spends by itself in the same time is subtracted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Any, Final

import asyncpg
import httpx
import msgspec

from deploy.local.configuration.bus_users import services_bus
from libs.bus import BusSettings, connect_bus
from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from tests.bench.cpu import cpu_s, workers_cpu_s
from tests.bench.creating.config import CONFIG
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.harness import eventually

POOL: Final = "default"
WARM_UP: Final = 40
EXPERIMENTS: Final = 120
EVERY_S: Final = 0.15
SETTLE_S: Final = 5.0
_GIVE_UP_S: Final = 60


async def measure(system: BenchSystem) -> list[Result]:
    pids = system.pids()
    os.kill(pids["launcher"], signal.SIGSTOP)
    try:
        await _offer(system, slots=2 * (WARM_UP + EXPERIMENTS))
        headers = {"Authorization": f"Bearer {system.log_in()}"}
        async with httpx.AsyncClient(base_url=system.options.master_url, headers=headers, timeout=60) as client:
            database = await asyncpg.connect(system.database_url)
            await _create(client, WARM_UP)
            await _ordered(database, WARM_UP)
            spent = await _spent(pids, lambda: _create(client, EXPERIMENTS))
            await _ordered(database, WARM_UP + EXPERIMENTS)
            await database.close()
    finally:
        os.kill(pids["launcher"], signal.SIGCONT)
    return [
        *(_result(f"creating an experiment: {name}", seconds) for name, seconds in spent.items()),
        _result("creating an experiment: api, scheduler and database", sum(spent.values())),
    ]


def _result(name: str, seconds: float) -> Result:
    return Result(name=name, value=1000 * seconds / EXPERIMENTS, unit="ms", baseline=1000.0, goal=None, better="lower")


async def _offer(system: BenchSystem, *, slots: int) -> None:
    devices = tuple(Device(id=f"{number:03}") for number in range(slots))
    capacity = PoolCapacity(pool=POOL, backend="process", nodes=(NodeCapacity(name="bench", devices=devices),))
    settings = msgspec.convert(services_bus(system.layout, system.options, "bench"), BusSettings)
    async with connect_bus(settings) as bus:
        bucket = bus.bucket(subjects.CAPACITY_BUCKET)
        await bucket.put(subjects.capacity_key(POOL), msgspec.json.encode(capacity))


async def _create(client: httpx.AsyncClient, count: int) -> None:
    """At a steady rate."""
    body = {"config": CONFIG, "modelDefinition": [], "activate": True}
    for _ in range(count):
        began = time.monotonic()
        (await client.post("/api/v1/experiments", json=body)).raise_for_status()
        await asyncio.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))


async def _spent(pids: dict[str, int], work: Callable[[], Any]) -> dict[str, float]:
    """Seconds of processor by process, without what is spent while nothing happens."""
    await asyncio.sleep(SETTLE_S)
    idle = _so_far(pids)
    began = time.monotonic()
    await asyncio.sleep(SETTLE_S)
    before, took = _so_far(pids), time.monotonic() - began
    by_itself = {name: (before[name] - idle[name]) / took for name in before}
    began = time.monotonic()
    await work()
    await asyncio.sleep(1)
    after, took = _so_far(pids), time.monotonic() - began
    return {name: after[name] - before[name] - by_itself[name] * took for name in before}


def _so_far(pids: dict[str, int]) -> dict[str, float]:
    # Either of the schedulers may hold the lease, and the other one does nothing.
    schedulers = sum(cpu_s(pid) for name, pid in pids.items() if name.startswith("scheduler"))
    return {"api": cpu_s(pids["api"]), "scheduler": schedulers, "database": workers_cpu_s(pids["postgres"])}


async def _ordered(database: Any, count: int) -> None:
    """Wait until so many trials have been ordered to run, and nothing is left to publish."""

    async def are_ordered() -> bool:
        ordered = await database.fetchval("SELECT count(*) FROM allocations WHERE assigned_at IS NOT NULL")
        return bool(ordered >= count and await database.fetchval("SELECT count(*) FROM outbox") == 0)

    await eventually(are_ordered, what=f"{count} trials ordered to run", timeout_s=_GIVE_UP_S)
