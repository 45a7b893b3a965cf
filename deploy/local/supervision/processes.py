"""Finds the processes of a state folder, by what ``run/`` says or by their command lines, and ends them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable
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
    return find_all(layout, (name,))[name]


def find_all(layout: Layout, names: Iterable[str]) -> dict[str, Found | None]:
    """``find`` for each of ``names``, with one look at the processes of the machine for all of them."""
    found = {name: _find_by_record(layout, name) for name in names}
    if missing := [name for name, process in found.items() if process is None]:
        found |= _find_by_command(layout, missing)
    return found


def _find_by_record(layout: Layout, name: str) -> Found | None:
    record = None
    with suppress(OSError):  # a file that cannot be read is as good as none
        record = records.read(layout.record(name))
    if record is None or not records.is_running(record):
        return None
    return Found(record.pid, record.since, record.restarts)


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


def end_all(layout: Layout, names: Iterable[str]) -> None:
    """``end`` each of ``names``, in this order."""
    for name, process in find_all(layout, names).items():
        if process is None:
            forget(layout, name)
        else:
            end(layout, name)


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


def _find_by_command(layout: Layout, names: Iterable[str]) -> dict[str, Found]:
    wanted = {command: name for name, command in _commands(layout, names).items()}
    if not wanted:
        return {}
    pids: dict[str, set[int]] = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if (name := wanted.get(_command(pid))) is not None:
            pids.setdefault(name, set()).add(pid)
    return {name: process for name, each in pids.items() if (process := _first(each)) is not None}


def _first(pids: set[int]) -> Found | None:
    """Of processes with one command line: a child has that of its parent until it executes a program of its own."""
    for pid in sorted(pids):
        parent, ticks = _parent_and_start(pid)
        if ticks is not None and parent not in pids:
            age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
            return Found(pid, time.time() - age_s, 0)
    return None


def _commands(layout: Layout, names: Iterable[str]) -> dict[str, bytes]:
    """What the command lines of processes say behind the program itself."""
    planned = {SUPERVISOR: supervisor_arguments(layout)}
    with suppress(OSError, ValueError):
        planned |= {entry["name"]: entry["argv"][1:] for entry in json.loads(layout.plan_file.read_text())}
    return {name: b"".join(os.fsencode(each) + b"\0" for each in planned[name]) for name in names if planned.get(name)}


def _command(pid: int) -> bytes:
    """As it stands in /proc, without the program itself; other people's may be long, so nothing of it is decoded."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[2]
    except OSError:
        return b""  # it has ended


def _parent_and_start(pid: int) -> tuple[int | None, int | None]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None, None
    return int(fields[1]), int(fields[19])
