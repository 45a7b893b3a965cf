"""Finding and ending the processes of a state folder."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from deploy import process_records as records
from deploy.local.layout import Layout
from deploy.local.supervision import processes
from deploy.process_records import ProcessRecord
from tests.harness.waiting import wait_until


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.record("nats").parent.mkdir()
    return layout


def test_a_process_that_ended_before_it_was_recorded_does_not_run(layout: Layout) -> None:
    """A server that finds its disk full ends at once; the record has no start then, as what has ended has none."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    record = ProcessRecord(pid=ended.pid, start_time=records.start_time(ended.pid), restarts=1, since=time.time())
    records.write(layout.record("nats"), record)
    assert processes.find(layout, "nats") is None
    assert not processes.end(layout, "nats")


def test_all_processes_without_records_are_found_with_one_look(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = [{"name": name, "argv": ["sleep", f"60.{number}"]} for number, name in enumerate(("nats", "api", "logs"))]
    layout.plan_file.write_text(json.dumps(plan))
    running = {each["name"]: subprocess.Popen(each["argv"]) for each in plan[:2]}
    for process in running.values():  # /proc says nothing of a process for a moment when it executes its program
        wait_until(Path(f"/proc/{process.pid}/cmdline").read_bytes, what="it is what it was started as")
    looks: list[str] = []
    monkeypatch.setattr(os, "listdir", lambda path, real=os.listdir: looks.append(path) or real(path))
    try:
        found = processes.find_all(layout, ("api", "logs", "nats"))
        assert {name: each and each.pid for name, each in found.items()} == {
            "api": running["api"].pid,
            "logs": None,
            "nats": running["nats"].pid,
        }
        assert looks == ["/proc"]
        processes.end_all(layout, ("api", "logs", "nats"))
        assert [process.wait() < 0 for process in running.values()] == [True, True]
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def test_a_process_is_found_and_ended(layout: Layout) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        processes.write_record(layout, "nats", process.pid)
        found = processes.find(layout, "nats")
        assert found is not None
        assert found.pid == process.pid
        assert processes.end(layout, "nats")
        assert process.wait() < 0
    finally:
        process.kill()
