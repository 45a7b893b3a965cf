"""Command line: ``python -m tests.load.simulate.matrix TRACES RESULTS``: all simulations that are shown in
docs/simulation-results.md, one after the other. What has its result already is passed over, so it can be ended at any
time."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from services.scheduler.plan.snapshot import PoolPolicy
from tests.load.simulate.cluster import workload
from tests.load.simulate.engine.simulation import Policy, simulate
from tests.load.simulate.policies.foreseeing import Foreseeing
from tests.load.simulate.policies.table import POLICIES, SAFE_AT_FIRST
from tests.load.simulate.report.curves import Curves, curves_of
from tests.load.simulate.report.measures import Measures, measure
from tests.load.simulate.report.report import Report, report_of
from tests.load.simulate.traces.job import Trace
from tests.load.simulate.traces.reading import read_trace
from tests.load.simulate.traces.synthetic import synthetic_day

BASELINES: Final = ("fifo", "easy", "easy-true", "pods-in-order")
OURS: Final = ("resolute", "resolute-preempt", "resolute-fifo", "resolute-robin", "resolute-fair")
COMPARED: Final = ("easy", "resolute")
"""Run on several cuts of a trace: one run of a busy cluster is chaotic."""
FIRST_CUT: Final = 0.05
CUT: Final = 0.01
FORESEEN_EVERY: Final = 10
"""Of so many jobs one has its start foreseen, under priority at a load of 0.9."""


class Simulated(Struct, frozen=True, kw_only=True):
    """One load on one trace."""

    name: str
    trace: str
    load: float
    policies: tuple[str, ...]
    cuts: int = 1
    """On how many cuts of the trace the policies of ``COMPARED`` are run; the others on the first alone."""


_ALL: Final = (*BASELINES, *OURS)
_WITHOUT_PRIORITIES: Final = (*BASELINES, "resolute", "resolute-robin", "resolute-fair")
"""Where all jobs have one priority, preemption and ``fifo`` are no different from ``resolute``."""
SIMULATED: Final = (
    Simulated(name="helios", trace="helios.csv.gz", load=0.9, policies=_ALL, cuts=6),
    Simulated(name="helios", trace="helios.csv.gz", load=1.1, policies=_ALL, cuts=6),
    Simulated(name="helios", trace="helios.csv.gz", load=0.7, policies=_ALL),
    Simulated(name="philly", trace="philly.csv.gz", load=0.9, policies=_WITHOUT_PRIORITIES, cuts=3),
    Simulated(name="alibaba", trace="openb_pod_list_gpuspec33.csv.gz", load=0.9, policies=_WITHOUT_PRIORITIES, cuts=5),
    Simulated(name="synthetic", trace="", load=0.9, policies=_ALL, cuts=3),
)
NODES: Final = "openb_node_list_gpu_node.csv.gz"


class Result(Struct, frozen=True, kw_only=True):
    report: Report
    """With one policy."""
    curves: Curves

    @property
    def measures(self) -> Measures:
        return self.report.policies[0]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load.simulate.matrix", description=__doc__)
    parser.add_argument("traces", type=Path, help="folder with the traces")
    parser.add_argument("results", type=Path, help="folder for the results")
    parser.add_argument("--only", nargs="+", choices=sorted({one.name for one in SIMULATED}), help="traces to simulate")
    arguments = parser.parse_args(argv)
    arguments.results.mkdir(parents=True, exist_ok=True)
    for one in SIMULATED:
        if arguments.only and one.name not in arguments.only:
            continue
        for policy, cut in runs_of(one):
            path = result_path(arguments.results, one, policy, cut)
            if not path.exists():
                begun_s = time.process_time()
                path.write_bytes(msgspec.json.encode(_run(one, policy, cut, arguments.traces)))
                print(f"{path.name}: {time.process_time() - begun_s:.0f} s of a processor", file=sys.stderr)
    return 0


def runs_of(one: Simulated) -> Iterator[tuple[str, int]]:
    """Policy and number of the cut."""
    for cut in range(one.cuts):
        for policy in one.policies:
            if not cut or policy in COMPARED:
                yield policy, cut


def result_path(folder: Path, one: Simulated, policy: str, cut: int) -> Path:
    return folder / f"{one.name}-{one.load:g}-{policy}-{cut}.json"


def results_of(folder: Path, one: Simulated, policy: str) -> list[Result]:
    """By cut, as far as they have been run."""
    cuts = one.cuts if policy in COMPARED else 1
    paths = (result_path(folder, one, policy, cut) for cut in range(cuts))
    return [msgspec.json.decode(path.read_bytes(), type=Result) for path in paths if path.exists()]


def _run(one: Simulated, name: str, cut: int, traces: Path) -> Result:
    work = workload(_trace(one, cut, traces), one.load)
    policy: Policy = POLICIES[name].make()
    if name == "resolute" and one.load == 0.9 and not cut:
        policy = Foreseeing(PoolPolicy(min_runtime=SAFE_AT_FIRST), every=FORESEEN_EVERY)
    outcome = simulate(name, policy, work)
    return Result(report=report_of(work, [measure(outcome)]), curves=curves_of(outcome))


def _trace(one: Simulated, cut: int, traces: Path) -> Trace:
    if not one.trace:
        return synthetic_day(seed=7 + cut)
    path = traces / one.trace
    return msgspec.structs.replace(
        read_trace(path, nodes=traces / NODES, leave_out=FIRST_CUT + CUT * cut), name=one.name
    )


if __name__ == "__main__":
    sys.exit(main())
