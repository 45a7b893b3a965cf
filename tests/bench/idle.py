"""Measures what the whole system costs while nothing happens: services, standby, supervisor, database and bus."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.bench.cpu import spent_s
from tests.bench.result import Result
from tests.bench.system import BenchSystem

SETTLE_S = 15
WATCH_S = 30
CORE_SHARE = 0.02
RESIDENT_MB = 600
SERVICES = ("api", "scheduler", "launcher", "logs")
SERVICES_MB = 280
PROPORTIONAL_MB = 200


async def measure(system: BenchSystem) -> list[Result]:
    await asyncio.sleep(SETTLE_S)
    everything = system.pids()
    before = spent_s(everything)
    await asyncio.sleep(WATCH_S)
    after = spent_s(everything)
    without_database = system.pids(without=("postgres",)).values()
    resident = sum(map(resident_mb, without_database))
    return [
        Result(
            name="idle: share of one core, everything",
            value=(after - before) / WATCH_S,
            unit="cores",
            baseline=CORE_SHARE,
            goal=1.0,
            better="lower",
        ),
        Result(
            name="idle: resident memory without PostgreSQL",
            value=resident,
            unit="MB",
            baseline=RESIDENT_MB,
            goal=1.0,
            better="lower",
        ),
        Result(
            name="idle: memory, a shared page counted once",
            value=sum(map(shared_out_mb, without_database)),
            unit="MB",
            baseline=PROPORTIONAL_MB,
            goal=1.0,
            better="lower",
        ),
        Result(
            name="idle: memory of the four services",
            value=sum(shared_out_mb(pid) for name, pid in everything.items() if name in SERVICES),
            unit="MB",
            baseline=SERVICES_MB,
            goal=1.0,
            better="lower",
        ),
    ]


def shared_out_mb(pid: int) -> float:
    """Resident memory in which a page that several processes share counts once among them (PSS)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
