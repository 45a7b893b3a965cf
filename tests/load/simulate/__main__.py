"""Command line: ``python -m tests.load.simulate PATH --load 0.9 --output DIR`` (docs/simulator.md)."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.load.simulate.cluster import workload
from tests.load.simulate.engine.outcome import Outcome
from tests.load.simulate.engine.simulation import CHECKPOINT_S, simulate
from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.report.curves import curves_of
from tests.load.simulate.report.markdown import markdown
from tests.load.simulate.report.measures import measure
from tests.load.simulate.report.plots import draw
from tests.load.simulate.report.report import report_of
from tests.load.simulate.traces.job import Trace
from tests.load.simulate.traces.reading import SPARSE_BEGINNING, read_trace
from tests.load.simulate.traces.synthetic import synthetic_day

SYNTHETIC = "synthetic"


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        trace = _trace(arguments)
        for load in arguments.load:
            _simulate(trace, load, arguments)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.load.simulate", description="Simulates a queue on a trace.")
    parser.add_argument("trace", help=f"a CSV file, may be compressed; or {SYNTHETIC}, a day of 20,000 invented jobs")
    parser.add_argument("--nodes", type=Path, help="CSV file of the traced cluster's nodes, for Alibaba's pods")
    parser.add_argument("--load", type=float, nargs="+", default=[0.9], help="load to be offered (default: 0.9)")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES), help="default: all")
    parser.add_argument("--output", type=Path, default=Path(), help="folder for the results (default: this one)")
    parser.add_argument("--plots", action="store_true", help="draw the results too, as SVG")
    parser.add_argument("--seed", type=int, default=7, help="of the invented jobs (default: 7)")
    parser.add_argument(
        "--leave-out",
        type=float,
        default=SPARSE_BEGINNING,
        metavar="SHARE",
        help=f"share of the jobs at the sparse beginning of a trace (default: {SPARSE_BEGINNING})",
    )
    parser.add_argument(
        "--checkpoint-interval",
        type=float,
        default=CHECKPOINT_S,
        metavar="SECONDS",
        help=f"run time between two checkpoints, for work lost by evictions (default: {CHECKPOINT_S:.0f})",
    )
    return parser


def _trace(arguments: argparse.Namespace) -> Trace:
    if any(load <= 0 for load in arguments.load):
        raise ValueError("--load has to be greater than zero")
    if not 0 <= arguments.leave_out < 1 or arguments.checkpoint_interval <= 0:
        raise ValueError("--leave-out has to be from 0 to below 1, --checkpoint-interval greater than zero")
    if arguments.trace == SYNTHETIC:
        return synthetic_day(seed=arguments.seed)
    return read_trace(Path(arguments.trace), nodes=arguments.nodes, leave_out=arguments.leave_out)


def _simulate(trace: Trace, load: float, arguments: argparse.Namespace) -> None:
    work = workload(trace, load)
    outcomes: list[Outcome] = []
    for name in arguments.policies:
        begun_s = time.process_time()
        policy = POLICIES[name].make()
        outcomes.append(simulate(name, policy, work, checkpoint_s=arguments.checkpoint_interval))
        print(f"{name}: {time.process_time() - begun_s:.1f} s of a processor", file=sys.stderr)
    report = report_of(work, [measure(outcome) for outcome in outcomes])
    arguments.output.mkdir(parents=True, exist_ok=True)
    stem = f"{trace.name}-{load:g}"
    # Nothing of this machine or of today is in the files: the same input gives the same bytes.
    as_json = msgspec.json.format(msgspec.json.encode(report), indent=1)
    (arguments.output / f"{stem}.json").write_bytes(as_json + b"\n")
    text = markdown(report)
    (arguments.output / f"{stem}.md").write_text(text)
    if arguments.plots:
        draw(report, [curves_of(outcome) for outcome in outcomes], arguments.output, stem)
    print(text)


if __name__ == "__main__":
    sys.exit(main())
