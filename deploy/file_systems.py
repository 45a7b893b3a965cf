"""File systems that have no space left, by the name under which an administrator knows them. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

ENOUGH_BYTES: Final = 4 * 2**20
"""What PostgreSQL and NATS need to go on: each writes files of several megabytes."""


class FileSystem(NamedTuple):
    mount_point: str
    free_bytes: int
    """For users without special rights."""
    total_bytes: int
    has_files_left: bool
    """False when it takes no further file, whatever their size."""

    @property
    def is_full(self) -> bool:
        return self.free_bytes < ENOUGH_BYTES or not self.has_files_left

    def __str__(self) -> str:
        if not self.has_files_left:
            return f"{self.mount_point} (no inode free)"
        return f"{self.mount_point} ({_megabytes(self.free_bytes)} of {_megabytes(self.total_bytes)} MB free)"


def file_system(path: Path) -> FileSystem:
    """The one that ``path``, or the nearest parent that exists, is on. Raises OSError."""
    place = path.absolute()
    while not place.exists():
        place = place.parent
    found = os.statvfs(place)
    place = place.resolve()
    while not place.is_mount():
        place = place.parent
    return FileSystem(
        mount_point=str(place),
        free_bytes=found.f_bavail * found.f_frsize,
        total_bytes=found.f_blocks * found.f_frsize,
        # Some have no fixed number of files, and say 0 of 0.
        has_files_left=found.f_favail > 0 or found.f_files == 0,
    )


def full_file_systems(paths: Iterable[Path]) -> list[FileSystem]:
    """Those of ``paths`` that have no space left, each once. Raises OSError."""
    found = {each.mount_point: each for each in map(file_system, paths)}
    return [each for each in found.values() if each.is_full]


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f}"
