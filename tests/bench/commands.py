"""Measures the time from launching a command until its first line can be read, against running it by hand."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import time
from pathlib import Path

import httpx

from tests.bench.result import Result
from tests.bench.system import BenchSystem

RUNS = 7
GIVE_UP_S = 60
SAYS = "the first line"


async def measure(system: BenchSystem) -> list[Result]:
    headers = {"Authorization": f"Bearer {system.log_in()}"}
    async with httpx.AsyncClient(base_url=system.options.master_url, headers=headers, timeout=GIVE_UP_S) as client:
        launched = [await _launch(client) for _ in range(RUNS)]
    return [
        Result(
            name="launch of a command to its first log line, median",
            value=statistics.median(launched),
            unit="s",
            baseline=statistics.median(_spawn(system) for _ in range(RUNS)),
            goal=None,
            better="lower",
        )
    ]


def _spawn(system: BenchSystem) -> float:
    environment = {"PATH": f"{Path(system.python).parent}:/usr/bin:/bin"}
    started_at = time.perf_counter()
    done = subprocess.run(["python3", "-c", f"print({SAYS!r})"], env=environment, capture_output=True, check=True)
    assert done.stdout.decode() == f"{SAYS}\n"
    return time.perf_counter() - started_at


async def _launch(client: httpx.AsyncClient) -> float:
    config = {"entrypoint": ["python3", "-c", f"print({SAYS!r})"], "resources": {"slots": 0}}
    started_at = time.perf_counter()
    answer = await client.post("/api/v1/commands", json={"config": config})
    task = answer.raise_for_status().json()["command"]["id"]
    async with client.stream("GET", f"/api/v1/tasks/{task}/logs", params={"follow": "true"}) as lines:
        async for line in lines.aiter_lines():
            if SAYS in line:
                elapsed = time.perf_counter() - started_at
                break
        else:
            raise RuntimeError(f"command {task} ended without its line")
    # The next one should find the machine as quiet as this one did.
    while not (await client.get(f"/api/v1/tasks/{task}")).json()["task"].get("endTime"):
        if time.perf_counter() - started_at > GIVE_UP_S:
            raise RuntimeError(f"command {task} did not end")
        await asyncio.sleep(0.1)
    return elapsed
