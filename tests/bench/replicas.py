"""What a metric report costs the api and the database when several replicas of the api serve a trial by turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from deploy.local.servers.ports import free_port
from tests.bench.cpu import cpu_s, workers_cpu_s
from tests.bench.result import Result
from tests.bench.rows import BenchTrial, insert_trials
from tests.bench.system import BenchSystem
from tests.harness.processes import ServiceProcess, answers_http
from tests.harness.raw_http import RawConnection

REPLICAS = (1, 2, 4)
REPORTS = 800
ROUNDS = 3
WARM = 40
"""Reports before those that are measured, by which all replicas know the trial."""
METRICS = {"loss": 0.25, "accuracy": 0.75, "learning_rate": 0.001, "epochs": 1}


async def measure(system: BenchSystem) -> list[Result]:
    trials = dict(zip(REPLICAS, await insert_trials(system.database_url, len(REPLICAS)), strict=True))
    costs: dict[int, list[float]] = {count: [] for count in REPLICAS}
    # All of them run all the time, so that what they do without reports is in each figure.
    with _replicas(system, max(REPLICAS)) as (urls, pids):
        for turn in range(ROUNDS):  # alternating, so that what else the machine does hits all
            for count, trial in trials.items():
                first = turn * (WARM + REPORTS) + 1
                costs[count].append(await _report(system, urls[:count], pids, trial, first))
    least = {count: min(of_count) for count, of_count in costs.items()}
    return [
        Result(
            name=f"processor time of a report, {count} replicas by turns",
            value=least[count] * 1e6,
            unit="us",
            baseline=least[1] * 1e6,
            goal=None if count == 1 else 1.2,
            better="lower",
        )
        for count in REPLICAS
    ]


async def _report(
    system: BenchSystem, urls: Sequence[str], pids: Sequence[int], trial: BenchTrial, first: int
) -> float:
    """Processor seconds of all replicas and the database per report of a trial, from step ``first`` on."""
    headers = {"Grpc-Metadata-x-allocation-token": f"Bearer {trial.token}"}
    connections = [await RawConnection.open(url, headers) for url in urls]
    path = f"/api/v1/trials/{trial.trial_id}/metrics"
    before = 0.0
    for n in range(WARM + REPORTS):
        if n == WARM:
            before = _spent_s(system, pids)
        connection = connections[n % len(connections)]
        await connection.send(connection.request(path, _body(trial.trial_id, first + n)))
    spent = _spent_s(system, pids) - before
    for connection in connections:
        connection.close()
    return spent / REPORTS


def _spent_s(system: BenchSystem, pids: Sequence[int]) -> float:
    return sum(map(cpu_s, pids)) + workers_cpu_s(system.pids()["postgres"])


def _body(trial_id: int, step: int) -> bytes:
    report = {
        "trialId": trial_id,
        "trialRunId": 1,
        "stepsCompleted": step,
        "reportTime": None,
        "metrics": {"avgMetrics": METRICS, "batchMetrics": None},
    }
    return json.dumps({"group": "training", "metrics": report}).encode()


@contextmanager
def _replicas(system: BenchSystem, count: int) -> Iterator[tuple[list[str], list[int]]]:
    """Addresses and process ids of the api of the system and of others beside it, ``count`` in all."""
    settings = yaml.safe_load((system.layout.config / "api.yaml").read_text())
    settings["telemetry"]["status_port"] = 0
    urls, pids = [system.options.master_url], [system.pids()["api"]]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="resolute-replicas-")))
        for number in range(1, count):
            port = free_port()
            settings["http"] = {**settings["http"], "host": "127.0.0.1", "port": port}
            file = folder / f"api-{number}.yaml"
            file.write_text(yaml.safe_dump(settings))
            url = f"http://127.0.0.1:{port}"
            service = ServiceProcess(
                "services.api.main",
                "--settings",
                str(file),
                log_path=folder / f"api-{number}.log",
                is_ready=answers_http(f"{url}/health"),
                forked=False,
            )
            stack.enter_context(service)
            urls.append(url)
            pids.append(service.pid)
        yield urls, pids
