"""What administrators see of a system: one experiment through all services."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.looking import Looking
from tests.harness.otlp import CollectedSpan, Collector, running_collector
from tests.harness.processes import REPOSITORY
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import submit


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running_collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def system(collector: Collector) -> Iterator[WholeSystem]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RESOLUTE_TELEMETRY__TRACES_ENDPOINT", collector.url)
        with running_system(slots=2) as started:
            yield started


def test_one_trace_follows_an_experiment_from_the_request_into_its_task(
    system: WholeSystem, collector: Collector
) -> None:
    experiment = submit(system.det(), "echo traceparent=$TRACEPARENT")
    with system.http() as http:
        look = Looking(http)
        look.wait(experiment)
        (printed,) = [line for line in look.printed(look.trial(experiment)["id"]) if line.startswith("traceparent=")]
    in_task = re.fullmatch(r"traceparent=00-([0-9a-f]{32})-([0-9a-f]{16})-01", printed)
    assert in_task is not None, printed
    trace_id, parent_of_task = in_task.groups()

    def complete() -> dict[str, CollectedSpan] | None:
        spans = {span.name: span for span in collector.trace(trace_id)}
        wanted = {"POST /api/v1/experiments", "experiment.reconcile", "allocation.queued", "allocation.start"}
        return spans if wanted <= spans.keys() else None

    spans = wait_until(complete, what="every service has reported its part", timeout_s=30)
    request, queued = spans["POST /api/v1/experiments"], spans["allocation.queued"]
    assert (request.service, request.parent_id) == ("resolute-api", "")
    assert (queued.service, queued.span_id) == ("resolute-scheduler", parent_of_task)
    start = spans["allocation.start"]
    assert (start.service, start.parent_id) == ("resolute-launcher", queued.span_id)
    # Up from the queue: what the scheduler did for the experiment, below the request.
    by_id = {span.span_id: span for span in collector.trace(trace_id)}
    reconciled = by_id[queued.parent_id]
    assert (reconciled.name, reconciled.parent_id) == ("experiment.reconcile", request.span_id)

    def hangs_together() -> bool:
        found = collector.trace(trace_id)
        return {span.parent_id for span in found} <= {"", *(span.span_id for span in found)}

    # Everything in the trace, also what went through the outbox. A span may come before the one around it has ended.
    wait_until(hangs_together, what="no span lacks the one above it", timeout_s=30)
    published = [span for span in by_id.values() if span.name == "outbox.publish"]
    subjects = [span.attributes["messaging.destination.name"] for span in published]
    assert f"resolute.v1.experiment.{experiment}.created" in subjects
    assert any(subject.startswith("$KV.ORDERS.default.") for subject in subjects)
    lines = [json.loads(line) for line in (system.layout.logs / "launcher.log").read_text().splitlines()]
    assert [line["event"] for line in lines if line.get("trace_id") == trace_id][:1] == ["allocation.start"]


def test_the_log_of_the_master_is_that_of_all_services_and_survives_them(system: WholeSystem) -> None:
    det = system.det()

    def speakers() -> set[str]:
        lines = det("master", "logs").splitlines()
        return {found.group(1) for line in lines if (found := re.search(r"\[[A-Z]+\]: (\w+)/\S+: ", line))}

    services = {"api", "scheduler", "launcher", "logs"}
    wait_until(lambda: services <= speakers(), what="every service is heard")
    before = det("master", "logs").splitlines()
    for name in services:
        system.kill(name)
    system.wait_until_ready()
    wait_until(lambda: det("master", "logs").count("http.listening") >= 2, what="the new api is heard")
    assert det("master", "logs").splitlines()[: len(before)] == before
    assert len(det("master", "logs", "--tail", "3").splitlines()) == 3


@pytest.mark.slow
def test_services_are_restarted_under_load_and_no_call_fails(system: WholeSystem) -> None:
    """As an upgrade does it: one after the other is asked to end, and the next one waits until it is back."""
    det = system.det()
    experiment = submit(
        det,
        "steps.py",
        hyperparameters={"steps": 40, "pause_s": 0.2, "x": {"type": "double", "minval": 0, "maxval": 1}},
        searcher={"name": "random", "metric": "loss", "max_trials": 4, "max_concurrent_trials": 2},
    )
    mine = system.det("load")
    mine("user", "login", "determined", answers=[""])
    over = threading.Event()
    calls: list[str] = []

    def call() -> None:
        for arguments in itertools.cycle((("experiment", "list"), ("experiment", "describe", str(experiment)))):
            if over.is_set():
                return
            calls.append(mine(*arguments))

    with ThreadPoolExecutor(1) as threads:
        load = threads.submit(call)
        try:
            for name in ("api", "scheduler", "logs", "launcher"):
                before, done = system.pids()[name], len(calls)
                os.kill(before, signal.SIGTERM)
                wait_until(lambda: system.pids().get(name, before) != before, what=f"{name} is another process")  # noqa: B023
                system.wait_until_ready()
                wait_until(lambda: load.done() or len(calls) >= done + 2, what="calls go on", timeout_s=60)  # noqa: B023
        finally:
            over.set()
        load.result()
    with system.http() as http:
        look = Looking(http)
        look.wait(experiment)
        assert [trial["restarts"] for trial in look.trials(experiment)] == [0] * 4
    doctor = subprocess.run(
        [sys.executable, "-m", "deploy.cli", "--state", str(system.layout.root), "doctor"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert doctor.returncode == 0, doctor.stdout
    assert "refuses whoever has no credentials" in doctor.stdout
    assert "one holds the lease" in doctor.stdout
    assert "user launcher-default of the bus: may do what it needs, and no more" in doctor.stdout
