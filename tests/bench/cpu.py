"""Processor time: what other users of a machine do changes how long things take, but hardly what they cost."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS: int = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """The rate at which something was done, and the processor time of everything it took, client included."""

    rate: float
    cpu_s: float


def spent_s(pids: Mapping[str, int]) -> float:
    """Processor time so far of a running system and of this process; ``pids`` by name, as ``BenchSystem.pids``."""
    own = os.times()
    return own.user + own.system + sum(map(cpu_s, pids.values())) + workers_cpu_s(pids["postgres"])


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS


def scheduled_s(pid: int) -> float:
    """The same of the threads that are there now, to the nanosecond where ``cpu_s`` counts ticks of 10 ms."""
    try:
        spent = [path.read_text().split()[0] for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    except (FileNotFoundError, ProcessLookupError):  # it ended while it was looked at
        return 0.0
    return sum(map(int, spent)) / 1e9


def workers_of(postmaster: int) -> list[int]:
    """Ids of the processes of a database server that serve its clients, and of those that work for itself."""
    return [int(child) for child in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()]


def workers_cpu_s(postmaster: int) -> float:
    """The same of the server's own processes, those that have ended included."""
    ended = _stat(postmaster)
    return sum(map(cpu_s, workers_of(postmaster))) + (int(ended[13]) + int(ended[14])) / _TICKS


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it ended since it was listed, and counts with its parent now
        return ["0"] * 16
