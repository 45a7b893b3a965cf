"""Runs all benchmarks, prints a table, and writes it as JSON too. A missed goal is reported, and fails nothing.

Those against a cluster are a set of their own, which needs a kubeconfig and nothing of the rest.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

import structlog
import uvloop

from tests.bench import (
    back_fill,
    commands,
    deciding,
    downloads,
    engine,
    idle,
    imports,
    libraries,
    logs,
    metrics,
    planner,
    replicas,
    searcher,
    starting,
    submit,
    wide_reports,
)
from tests.bench.creating import creating
from tests.bench.delivering import webhooks
from tests.bench.kubernetes import calls, launching, many_pods, next_pod
from tests.bench.kubernetes.site import cluster_under_test
from tests.bench.proxying import proxy
from tests.bench.reading import authorization, charts, large, lists, reads, searches, small
from tests.bench.result import Result, table
from tests.bench.system import BenchSystem, running_system

BENCHMARKS: Final[dict[str, Callable[[BenchSystem], Coroutine[Any, Any, list[Result]] | list[Result]]]] = {
    "idle": idle.measure,
    "starting": starting.measure,
    "libraries": libraries.measure,
    "submit": submit.measure,
    "creating": creating.measure,
    "commands": commands.measure,
    "metrics": metrics.measure,
    "wide-reports": wide_reports.measure,
    "replicas": replicas.measure,
    "back-fill": back_fill.measure,
    "logs": logs.measure,
    "planner": planner.measure,
    "deciding": deciding.measure,
    "engine": engine.measure,
    "searcher": searcher.measure,
    "imports": imports.measure,
    "proxy": proxy.measure,
    "downloads": downloads.measure,
    "reads": reads.measure,
    "searches": searches.measure,
    "lists": lists.measure,
    "small-reads": small.measure,
    "charts": charts.measure,
    "webhooks": webhooks.measure,
    "authorization": authorization.measure,
    "large": large.measure,
}

CLUSTER_BENCHMARKS = {
    "launching": launching.measure,
    "calls": calls.measure,
    "next-pod": next_pod.measure,
    "many-pods": many_pods.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = f"{', '.join(BENCHMARKS)}; with --kubeconfig {', '.join(CLUSTER_BENCHMARKS)}"
    parser.add_argument("names", nargs="*", help=f"which ones (default: all): {known}")
    parser.add_argument("--kubeconfig", type=Path, help="run those against this cluster")
    parser.add_argument("--output", type=Path, help="write the results there as JSON")
    arguments = parser.parse_args()
    results = against_cluster(arguments.kubeconfig, arguments.names) if arguments.kubeconfig else here(arguments.names)
    print(table(results))
    if arguments.output:
        arguments.output.write_text(json.dumps([result.as_json() for result in results], indent=2) + "\n")


def here(names: Sequence[str]) -> list[Result]:
    results: list[Result] = []
    with running_system() as system:
        for name in names or BENCHMARKS:
            measured = BENCHMARKS[name](system)
            results += uvloop.run(measured) if isinstance(measured, Coroutine) else measured
    return results


def against_cluster(kubeconfig: Path, names: Sequence[str]) -> list[Result]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    results: list[Result] = []
    with cluster_under_test(kubeconfig) as cluster:
        for name in names or CLUSTER_BENCHMARKS:
            results += uvloop.run(CLUSTER_BENCHMARKS[name](cluster))
    return results


if __name__ == "__main__":
    main()
