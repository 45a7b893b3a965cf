"""What a metric report costs the api and the database when several replicas of the api serve a trial by turns.

A process that has rested finds the caches of its processor full of what others have done meanwhile: one replica alone
takes 1.8 times as much for a report each 10 ms as for reports one after another, for the same work. So that this is not
taken for a cost of sharing, all replicas are equally busy: there are as many trials as replicas, and each trial stays
with one of them, or goes by turns through two or four. What a single trial costs is printed beside it, with both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
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
MOST = max(REPLICAS)
SHARED = "processor time of a report, {} replicas by turns"
ALONE = "the same of a single trial, {} replicas by turns"
REPORTS = 800
ROUNDS = 3
WARM = 40
"""Reports before those that are measured, by which all replicas know the trial."""
METRICS = {"loss": 0.25, "accuracy": 0.75, "learning_rate": 0.001, "epochs": 1}


async def measure(system: BenchSystem) -> list[Result]:
    shared = {count: await insert_trials(system.database_url, MOST) for count in REPLICAS}
    alone = dict(zip(REPLICAS, await insert_trials(system.database_url, len(REPLICAS)), strict=True))
    costs: dict[str, list[float]] = {}
    # All of them run all the time, so that what they do without reports is in each figure.
    with _replicas(system, MOST) as (urls, pids):
        for turn in range(ROUNDS):  # alternating, so that what else the machine does hits all
            for count in REPLICAS:
                spent = await _report(system, urls, pids, shared[count], count, turn)
                costs.setdefault(SHARED.format(count), []).append(spent)
            for count in REPLICAS:
                spent = await _report(system, urls, pids, [alone[count]], count, turn)
                costs.setdefault(ALONE.format(count), []).append(spent)
    least = {name: min(of_name) for name, of_name in costs.items()}
    return [
        Result(
            name=name.format(count),
            value=least[name.format(count)] * 1e6,
            unit="us",
            baseline=least[name.format(1)] * 1e6,
            goal=1.2 if count > 1 else None,
            better="lower",
        )
        for name in (SHARED, ALONE)
        for count in REPLICAS
    ]


async def _report(
    system: BenchSystem, urls: Sequence[str], pids: Sequence[int], trials: Sequence[BenchTrial], count: int, turn: int
) -> float:
    """Processor seconds of all replicas and the database per report of trials, each served by ``count`` replicas."""
    paths = [f"/api/v1/trials/{trial.trial_id}/metrics" for trial in trials]
    connections = [[await _connect(url, trial) for url in urls] for trial in trials]
    steps = REPORTS // len(trials)
    before = 0.0
    for n in range(WARM + steps):
        if n == WARM:
            before = _spent_s(system, pids)
        for place, trial in enumerate(trials):
            connection = connections[place][place // count * count + n % count]
            await connection.send(
                connection.request(paths[place], _body(trial.trial_id, turn * (WARM + steps) + n + 1))
            )
    spent = _spent_s(system, pids) - before
    for connection in chain.from_iterable(connections):
        connection.close()
    return spent / (steps * len(trials))


async def _connect(url: str, trial: BenchTrial) -> RawConnection:
    return await RawConnection.open(url, {"Grpc-Metadata-x-allocation-token": f"Bearer {trial.token}"})


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
