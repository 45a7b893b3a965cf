"""Finds the processes of a state folder by what ``run/`` says, and ends them."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass

from deploy.local.layout import Layout
from deploy.local.supervision.supervisor import start_time

SUPERVISOR = "supervisor"


@dataclass(frozen=True)
class Found:
    pid: int
    since: float
    restarts: int


def find(layout: Layout, name: str) -> Found | None:
    """The running process recorded under ``name``; None when it is gone, or its number belongs to another by now."""
    try:
        record = json.loads(layout.record(name).read_text())
    except (FileNotFoundError, ValueError):
        return None
    if start_time(record["pid"]) != record["start_time"]:
        return None
    return Found(record["pid"], record["since"], record["restarts"])


def write_record(layout: Layout, name: str, pid: int) -> None:
    record = {"pid": pid, "start_time": start_time(pid), "restarts": 0, "since": time.time()}
    partial = layout.record(name).with_suffix(".partial")
    partial.write_text(json.dumps(record))
    partial.replace(layout.record(name))


def end(layout: Layout, name: str, *, timeout_s: float = 15.0) -> bool:
    """Ask a recorded process to end, and insist after ``timeout_s``. False when it was not running."""
    found = find(layout, name)
    if found is None:
        layout.record(name).unlink(missing_ok=True)
        return False
    give_up_at = time.monotonic() + timeout_s
    _send(found.pid, signal.SIGTERM)
    while find(layout, name) is not None:
        if time.monotonic() > give_up_at:
            _send(found.pid, signal.SIGKILL)
        time.sleep(0.05)
    layout.record(name).unlink(missing_ok=True)
    return True


def hang_up(layout: Layout) -> None:
    """Make the supervisor look at its hold files."""
    if found := find(layout, SUPERVISOR):
        _send(found.pid, signal.SIGHUP)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
