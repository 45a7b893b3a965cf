"""Records of the processes of a state folder: one file each, whose space on the disk is kept.

A record is written over the one before, in a file that has had the size of a block from the start, so that a full disk
does not prevent it. What is read in the middle of that may be torn; it is read again then. Standard library only.
"""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

BYTES: Final = 4096
LONGEST_DELAY_S: Final = 5.0
"""How long the supervisor waits at most before it starts a process anew."""
HEALTHY_AFTER_S: Final = 20.0
"""A process that lived this long is restarted without delay when it dies."""
_READS: Final = 3
_READ_AGAIN_S: Final = 0.01


class ProcessRecord(NamedTuple):
    pid: int
    start_time: str | None
    """See ``start_time``."""
    restarts: int
    since: float
    """Unix time, seconds."""
    failures: int = 0
    """So many of its predecessors in a row ended soon after they were started."""


def start_time(pid: int) -> str | None:
    """When a process started, in ticks since boot: with the pid it names one process for good. None: there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else fields[18]


def is_running(record: ProcessRecord) -> bool:
    """Whether the process that was recorded still runs. One that had ended before it was recorded does not."""
    return record.start_time is not None and start_time(record.pid) == record.start_time


def keep_space(path: Path) -> None:
    """Give the file of a record its size, if it does not have it; what it says stays. Raises OSError."""
    try:
        said = path.read_bytes()
    except FileNotFoundError:
        said = b""
    if len(said) < BYTES:
        _overwrite(path, said)


def write(path: Path, record: ProcessRecord) -> None:
    """Raises OSError; what was there before may be torn then."""
    _overwrite(path, json.dumps(record._asdict()).encode())


def read(path: Path) -> ProcessRecord | None:
    """None when nothing, or nothing that makes sense, is recorded there. Raises OSError if the file cannot be read."""
    for _ in range(_READS):
        try:
            said = path.read_bytes().strip()
        except FileNotFoundError:
            return None
        if not said:
            return None
        if (record := _decoded(said)) is not None:
            return record
        time.sleep(_READ_AGAIN_S)
    return None


def clear(path: Path) -> None:
    """Record that there is no process; the space is kept. Raises OSError."""
    if path.exists():
        _overwrite(path, b"")


def _decoded(said: bytes) -> ProcessRecord | None:
    try:
        fields: dict[str, Any] = json.loads(said)
        return ProcessRecord(**fields)
    except (ValueError, TypeError):
        return None


def _overwrite(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if os.pwrite(descriptor, content.ljust(BYTES), 0) < BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(descriptor)
