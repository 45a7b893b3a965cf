"""Finding and ending the processes of a state folder."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from deploy import process_records as records
from deploy.local.layout import Layout
from deploy.local.supervision import processes
from deploy.process_records import ProcessRecord


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
