"""A small file system that can be filled and emptied again, so that no test fills the disk of the machine."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

_BLOCK: Final = bytes(4096)
_LOOK_EVERY_S: Final = 0.02


class SmallDisk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

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
    def filled(self) -> Iterator[None]:
        """Leave no block free while the block runs, whoever deletes or truncates files meanwhile."""
        over = threading.Event()

        def keep_full() -> None:
            while not over.wait(_LOOK_EVERY_S):
                self.fill()

        self.fill()
        filling = threading.Thread(target=keep_full, name="ballast")
        filling.start()
        try:
            yield
        finally:
            over.set()
            filling.join()
            self.free()


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
