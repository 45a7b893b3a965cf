"""Log files of services: their owner writes them, the group of the owner may read them, and nobody else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Final

MODE: Final = 0o640


def open_log(path: Path) -> BinaryIO:
    """The log file, created where it is missing, to append to. Raises OSError."""
    return open(open_descriptor(path), "ab")


def open_descriptor(path: Path) -> int:
    """Its descriptor, for whoever hands it to a process. A file that an older release made gets the mode as well."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, MODE)
    if os.geteuid() in (0, os.fstat(descriptor).st_uid):
        os.fchmod(descriptor, MODE)  # whatever the umask says
    return descriptor
