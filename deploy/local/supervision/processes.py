"""Finds the processes of a state folder, by what ``run/`` says or by their command lines, and ends them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy import process_records as records
from deploy.local.layout import Layout
from deploy.process_records import ProcessRecord, start_time

SUPERVISOR = "supervisor"
SUPERVISOR_MODULE: Final = "deploy.local.supervision.supervisor"


@dataclass(frozen=True)
class Found:
    pid: int
    since: float
    restarts: int


def find(layout: Layout, name: str) -> Found | None:
    """The running process ``name`` of this state folder; None when there is none.

    One whose record could not be written is found by its command line, which names the state folder.
    """
    record = None
    with suppress(OSError):  # a file that cannot be read is as good as none
        record = records.read(layout.record(name))
    if record is not None and records.is_running(record):
        return Found(record.pid, record.since, record.restarts)
    return _find_by_command(layout, name)


def write_record(layout: Layout, name: str, pid: int) -> None:
    """Raises OSError."""
    record = ProcessRecord(pid=pid, start_time=start_time(pid), restarts=0, since=time.time())
    records.write(layout.record(name), record)


def forget(layout: Layout, name: str) -> None:
    """Record that no process ``name`` runs."""
    with suppress(OSError):  # the record of a process that is gone does no harm
        records.clear(layout.record(name))


def end(layout: Layout, name: str, *, timeout_s: float = 15.0) -> bool:
    """Ask a recorded process to end, and insist after ``timeout_s``. False when it was not running."""
    found = find(layout, name)
    if found is None:
        forget(layout, name)
        return False
    give_up_at = time.monotonic() + timeout_s
    _send(found.pid, signal.SIGTERM)
    while find(layout, name) is not None:
        if time.monotonic() > give_up_at:
            _send(found.pid, signal.SIGKILL)
        time.sleep(0.05)
    forget(layout, name)
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


def supervisor_arguments(layout: Layout) -> list[str]:
    """Of the interpreter that runs the supervisor."""
    return ["-m", SUPERVISOR_MODULE, str(layout.root)]


def _find_by_command(layout: Layout, name: str) -> Found | None:
    wanted = supervisor_arguments(layout) if name == SUPERVISOR else _planned_arguments(layout, name)
    if not wanted:
        return None
    commands = {pid: _command(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
    pids = {pid for pid, command in commands.items() if command[1:] == wanted}
    # A child has the command line of its parent until it executes a program of its own.
    for pid in sorted(pids):
        parent, ticks = _parent_and_start(pid)
        if ticks is not None and parent not in pids:
            age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
            return Found(pid, time.time() - age_s, 0)
    return None


def _planned_arguments(layout: Layout, name: str) -> Sequence[str]:
    """Without the program itself."""
    try:
        plan = json.loads(layout.plan_file.read_text())
    except (OSError, ValueError):
        return ()
    return next((entry["argv"][1:] for entry in plan if entry["name"] == name), ())


def _command(pid: int) -> list[str]:
    try:
        return [os.fsdecode(part) for part in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]]
    except OSError:
        return []  # it has ended


def _parent_and_start(pid: int) -> tuple[int | None, int | None]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None, None
    return int(fields[1]), int(fields[19])
