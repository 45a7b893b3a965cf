"""Measures `resolute up` on a folder that has its database: to the first answer, and to the task of a new experiment.

A system of its own is started, stopped and started again, by the command that people type. The one that the other
benchmarks use goes on meanwhile, and has nothing to do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from deploy.local import system as local
from deploy.local.layout import Layout
from deploy.local.leftover_tasks import tasks
from tests.bench.cpu import cpu_s, workers_cpu_s
from tests.bench.result import Result
from tests.bench.submit import submit
from tests.bench.system import BenchSystem

RUNS = 5
GIVE_UP_S = 120
LOOK_EVERY_S = 0.02
WALL_S = 4.4
"""Of the old server, on two cores, to its first answer."""
PROCESSOR_S = 2.0
"""The same."""


@dataclass(frozen=True)
class _Start:
    answered_s: float
    task_s: float
    processor_s: float
    """Of all processes and of the command, when it has returned."""


def measure(system: BenchSystem) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="resolute-start-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        layout = Layout(Path(folder) / "state")
        arguments = argparse.Namespace(
            host="127.0.0.1", port=0, slots=2, python=system.python, config=None, standby="yes"
        )
        try:
            started = BenchSystem(layout, local.start(layout, arguments))
            starts = []
            for run in range(RUNS):
                local.stop(layout)
                starts.append(asyncio.run(_start(started, Path(folder) / f"mark-{run}")))
        finally:
            local.stop(layout)
            tasks.end(layout)
    return [
        _result("start to the first answer, median", [each.answered_s for each in starts], WALL_S),
        _result("start, processor of all processes, median", [each.processor_s for each in starts], PROCESSOR_S),
        _result("start to the first task of a new experiment", [each.task_s for each in starts], WALL_S),
    ]


def _result(name: str, seconds: list[float], baseline: float) -> Result:
    value = statistics.median(seconds)
    return Result(name=name, value=value, unit="s", baseline=baseline, goal=1.0, better="lower")


async def _start(started: BenchSystem, mark: Path) -> _Start:
    before = _of_children()
    began = time.perf_counter()
    command = subprocess.Popen(  # noqa: ASYNC220  both are short
        [sys.executable, "-m", "deploy.cli", "--state", str(started.layout.root), "up"], stdout=subprocess.DEVNULL
    )
    async with httpx.AsyncClient(base_url=started.options.master_url, timeout=GIVE_UP_S) as client:
        await _answers(client, began)
        answered = time.perf_counter() - began
        if await asyncio.to_thread(command.wait, GIVE_UP_S) != 0:
            raise RuntimeError(f"resolute up ended with {command.returncode}")
        pids = started.pids()
        spent = sum(map(cpu_s, pids.values())) + workers_cpu_s(pids["postgres"]) + _of_children() - before
        client.headers["Authorization"] = f"Bearer {await asyncio.to_thread(started.log_in)}"
        submitted = time.perf_counter()
        ran = await submit(client, mark)
    return _Start(answered_s=answered, task_s=submitted - began + ran, processor_s=spent)


async def _answers(client: httpx.AsyncClient, began: float) -> None:
    while time.perf_counter() - began < GIVE_UP_S:
        try:
            if (await client.get("/info")).is_success:
                return
        except httpx.TransportError:
            pass  # nobody listens yet
        await asyncio.sleep(LOOK_EVERY_S)
    raise RuntimeError("the api did not answer")


def _of_children() -> float:
    """Processor time of the commands that were run and have ended, with what they have run."""
    times = os.times()
    return times.children_user + times.children_system
