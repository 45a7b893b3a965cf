"""A small file system that can be filled and emptied again, so that no test fills the disk of the machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

_BLOCK: Final = bytes(4096)


class SmallDisk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Leave no block free."""
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while os.write(descriptor, _BLOCK):
                pass
        except OSError:
            return
        finally:
            os.close(descriptor)

    def free(self) -> None:
        """Give back what was filled."""
        self._ballast.unlink()


@contextmanager
def small_disk(path: Path, *, size_mb: int) -> Iterator[SmallDisk]:
    """A file system in memory at ``path``. Skips the test where nothing may be mounted."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        pytest.skip(f"may not mount ({done.stderr.strip()}): sudo .venv/bin/python -m pytest {test}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
