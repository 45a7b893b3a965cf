"""Runs all benchmarks, prints a table, and writes ``bench.json``. A missed goal is reported, and fails nothing."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import uvloop

from tests.bench import idle, logs, metrics, planner, submit
from tests.bench.result import Result, table
from tests.bench.system import running_system

BENCHMARKS = {
    "idle": idle.measure,
    "submit": submit.measure,
    "metrics": metrics.measure,
    "logs": logs.measure,
    "planner": planner.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which ones (default: all): {', '.join(BENCHMARKS)}")
    parser.add_argument("--output", type=Path, help="write the results there as JSON")
    arguments = parser.parse_args()
    results: list[Result] = []
    with running_system() as system:
        for name in arguments.names or BENCHMARKS:
            results += uvloop.run(BENCHMARKS[name](system))
    print(table(results))
    if arguments.output:
        arguments.output.write_text(json.dumps([result.as_json() for result in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
