"""What tasks of the process backend find around them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from typing import Final

import pytest

from services.launcher.backends.process.supervision.spawning import PYTHON
from tests.integration.launcher.fakes import FakeMaster, serve_master

NOBODY: Final = 65534


@pytest.fixture
def linked_users() -> None:
    """Skips where tasks cannot run as somebody else: only root's can, with an interpreter that others may execute."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    try:
        subprocess.run([PYTHON, "-c", "pass"], user=NOBODY, group=NOBODY, extra_groups=(), check=True)
    except PermissionError:
        pytest.skip(f"needs an interpreter that ordinary users may execute; {PYTHON} is none")


@pytest.fixture
def master() -> Iterator[FakeMaster]:
    with serve_master() as fake:
        yield fake
