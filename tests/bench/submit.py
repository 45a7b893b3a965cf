"""Measures the time from submitting an experiment to the first line of user code, against starting it by hand."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

from tests.bench.result import Result
from tests.bench.system import BenchSystem

RUNS = 7
GIVE_UP_S = 60
CONFIG = """
name: bench
entrypoint: {entrypoint}
searcher: {{name: single, metric: loss}}
resources: {{slots_per_trial: 1}}
max_restarts: 0
"""


async def measure(system: BenchSystem) -> list[Result]:
    token = system.log_in()
    submitted: list[float] = []
    spawned: list[float] = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o777)
        async with httpx.AsyncClient(
            base_url=system.options.master_url, headers={"Authorization": f"Bearer {token}"}, timeout=60
        ) as client:
            for run in range(RUNS):
                spawned.append(_spawn(system, Path(folder) / f"spawned-{run}"))
                submitted.append(await submit(client, Path(folder) / f"submitted-{run}"))
    return [
        Result(
            name="submit to first line of user code, median",
            value=statistics.median(submitted),
            unit="s",
            baseline=statistics.median(spawned),
            goal=None,
            better="lower",
        )
    ]


def _command(mark: Path) -> str:
    """User code whose first line says that it runs."""
    return f"""python3 -c 'open("{mark}", "w").close()'"""


def _spawn(system: BenchSystem, mark: Path) -> float:
    environment = {"PATH": f"{Path(system.python).parent}:/usr/bin:/bin"}
    started_at = time.perf_counter()
    subprocess.run(["/bin/sh", "-c", _command(mark)], env=environment, check=True)
    assert mark.exists()
    return time.perf_counter() - started_at


async def submit(client: httpx.AsyncClient, mark: Path) -> float:
    """Seconds until the task of a new experiment has made ``mark``; returns when the experiment is over."""
    # A JSON string is a YAML string, whatever it contains.
    config = CONFIG.format(entrypoint=json.dumps(_command(mark)))
    started_at = time.perf_counter()
    answer = await client.post("/api/v1/experiments", json={"config": config, "modelDefinition": [], "activate": True})
    experiment = answer.raise_for_status().json()["experiment"]["id"]
    while not mark.exists():
        if time.perf_counter() - started_at > GIVE_UP_S:
            raise RuntimeError(f"experiment {experiment} did not start")
        await asyncio.sleep(0.005)
    elapsed = time.perf_counter() - started_at
    while (await client.get(f"/api/v1/experiments/{experiment}")).json()["experiment"]["state"] != "STATE_COMPLETED":
        if time.perf_counter() - started_at > GIVE_UP_S:
            raise RuntimeError(f"experiment {experiment} did not end")
        await asyncio.sleep(0.1)
    return elapsed
