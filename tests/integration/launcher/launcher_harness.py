"""A launcher process with a state directory of its own, and what it says on the bus."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from libs.bus import Bus, CoreMessage
from libs.capture.lines import CapturedLine, decode
from libs.events.capacity import PoolCapacity
from libs.events.observations import AllocationObserved
from libs.events.orders import Order, Owner, TaskSpec
from libs.events.subjects import CAPACITY_BUCKET, ORDERS_BUCKET, capacity_key, observed_by, order_key, token
from services.launcher.backends.process.supervision.process_trees import kill_pod, pids_of_pod, send
from tests.harness.processes import ServiceProcess
from tests.harness.waiting import PATIENCE_S, eventually

POOL = "local"


def command(*argv: str, **fields: Any) -> TaskSpec:
    """A command task without slots."""
    values: dict[str, Any] = {
        "task": "11111111-2222-4333-8444-555555555555",
        "task_type": "COMMAND",
        "name": "Command (test)",
        "description": "cmd-test",
        "cluster_id": "cluster",
        "owner": Owner(username="alice", uid=os.getuid(), gid=os.getgid()),
        "slots": 0,
        "session_token": "session-token",
        "user_token": "user-token",
        "argv": argv,
    }
    return TaskSpec(**{**values, **fields})


class LauncherHarness:
    """One pool with one launcher."""

    def __init__(self, bus: Bus, directory: Path, python: str, settings: Mapping[str, str]) -> None:
        self.bus = bus
        self.state_dir = directory / "state"
        self.observations: list[AllocationObserved] = []
        self.launcher = ServiceProcess(
            "services.launcher.main",
            log_path=directory / "launcher.log",
            env={
                "RESOLUTE_POOL": POOL,
                "RESOLUTE_PROCESS__STATE_DIR": str(self.state_dir),
                "RESOLUTE_PROCESS__PYTHON": python,
                "RESOLUTE_PROCESS__NODE_NAME": "node-a",
                "RESOLUTE_PROCESS__SLOTS": "4",
                "RESOLUTE_LOOP__ABSENCE_GRACE_S": "0",
                "SECRET_OF_THE_LAUNCHER": "do not tell",
                **settings,
            },
        )

    async def run(self, allocation: str, spec: TaskSpec) -> None:
        await self.order(Order(allocation=allocation, pool=POOL, desired="run", spec=spec))

    async def stop(self, allocation: str, grace_s: float = 5.0) -> None:
        await self.order(Order(allocation=allocation, pool=POOL, desired="stop", grace_s=grace_s))

    async def order(self, order: Order) -> None:
        key = order_key(POOL, order.allocation)
        await self.bus.bucket(ORDERS_BUCKET).put(key, msgspec.json.encode(order))

    async def withdraw(self, allocation: str) -> None:
        await self.bus.bucket(ORDERS_BUCKET).delete(order_key(POOL, allocation))

    def last(self, allocation: str) -> AllocationObserved | None:
        of_it = [seen for seen in self.observations if seen.allocation == allocation]
        return max(of_it, key=lambda seen: seen.revision, default=None)

    async def until(
        self, allocation: str, is_so: Callable[[AllocationObserved], bool], *, timeout_s: float = PATIENCE_S
    ) -> AllocationObserved:
        """Wait until the newest observation of an allocation satisfies ``is_so``."""

        def look() -> AllocationObserved | None:
            seen = self.last(allocation)
            return seen if seen is not None and is_so(seen) else None

        try:
            found = await eventually(look, timeout_s=timeout_s, what=f"{allocation}: {self.last(allocation)}")
        except AssertionError as error:
            raise AssertionError(f"{self.last(allocation)}\n{self.launcher.log()}") from error
        assert found is not None
        return found

    async def until_ended(self, allocation: str, *, timeout_s: float = PATIENCE_S) -> AllocationObserved:
        return await self.until(allocation, lambda seen: seen.gone, timeout_s=timeout_s)

    async def until_running(self, allocation: str) -> AllocationObserved:
        return await self.until(
            allocation, lambda seen: bool(seen.pods) and all(pod.state == "RUNNING" for pod in seen.pods)
        )

    async def capacity(self) -> PoolCapacity | None:
        entry = await self.bus.bucket(CAPACITY_BUCKET).get(capacity_key(POOL))
        return None if entry is None else msgspec.json.decode(entry.value, type=PoolCapacity)

    def directory(self, allocation: str) -> Path:
        return self.state_dir / "allocations" / token(allocation)

    def pod(self, allocation: str, rank: int = 0) -> Path:
        return self.directory(allocation) / "pods" / str(rank)

    def run_dir(self, allocation: str, rank: int = 0) -> Path:
        return self.pod(allocation, rank) / "run"

    def pids(self, allocation: str, rank: int = 0) -> list[int]:
        return pids_of_pod(str(self.run_dir(allocation, rank)))

    def running(self, allocation: str, program: str, rank: int = 0) -> list[int]:
        """Processes of a pod that have become ``program``; a child that was only forked yet is none of them."""
        return [pid for pid in self.pids(allocation, rank) if _program(pid) == program]

    def supervisor(self, allocation: str) -> int:
        return int((self.directory(allocation) / "supervisor.lock").read_text())

    def printed(self, allocation: str, stream: str = "stdout", rank: int = 0) -> list[str]:
        """What a pod printed so far, as far as it lies in its first segment."""
        path = self.pod(allocation, rank) / "logs" / f"{stream}.0.log"
        return payloads(path.read_bytes()) if path.exists() else []

    def remains(self) -> Sequence[str]:
        allocations = self.state_dir / "allocations"
        return sorted(path.name for path in allocations.iterdir()) if allocations.exists() else []


def payloads(segment: bytes) -> list[str]:
    """What was printed, out of a capture file."""
    records = [decode(record) for record in segment.split(b"\n")[:-1]]
    return [record.payload.decode() for record in records if isinstance(record, CapturedLine)]


@asynccontextmanager
async def open_harness(
    bus: Bus, bus_url: str, directory: Path, python: str, settings: Mapping[str, str] | None = None
) -> AsyncIterator[LauncherHarness]:
    """A pool with its launcher running; whatever is still there at the end is killed."""
    harness = LauncherHarness(bus, directory, python, {"RESOLUTE_BUS__URL": bus_url, **(settings or {})})

    async def note(message: CoreMessage) -> None:
        harness.observations.append(msgspec.json.decode(message.data, type=AllocationObserved))

    async with bus.subscribe(observed_by(), note):
        harness.launcher.start()
        try:
            yield harness
        finally:
            harness.launcher.stop()
            for path in sorted((harness.state_dir / "allocations").glob("*/pods/*/run")):
                kill_pod(str(path))
            for path in sorted((harness.state_dir / "allocations").glob("*/pods/*/ship/ship.lock")):
                _kill(path)
            for path in sorted((harness.state_dir / "allocations").glob("*/supervisor.lock")):
                _kill(path)


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _kill(lock: Path) -> None:
    from services.launcher.backends.process.records import holder

    pid = holder(lock)
    if pid:
        send(pid, signal.SIGKILL)


def make_python(directory: Path, executable: str = sys.executable) -> str:
    """A script that runs ``executable`` with a ``determined`` package of which every module does nothing."""
    package = directory / "env" / "lib" / "determined" / "exec"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    for module in ("prep_container", "launch", "gc_checkpoints"):
        (package / f"{module}.py").write_text(f"import sys; print('{module}', *sys.argv[1:], flush=True)\n")
    (directory / "env" / "bin").mkdir()
    python = directory / "env" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{package.parent.parent}" exec {executable} "$@"\n')
    python.chmod(0o755)
    return str(python)
