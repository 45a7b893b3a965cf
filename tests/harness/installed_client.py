"""Where the unmodified client is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.processes import REPOSITORY


def det_path() -> Path:
    """The client to test with. Skips the test when there is none."""
    path = Path(os.environ.get("RESOLUTE_DET") or REPOSITORY / ".venv-client" / "bin" / "det")
    if not path.exists():
        pytest.skip("needs the client: `make setup` installs it, RESOLUTE_DET=/path/to/det names another")
    return path


def client_python() -> Path:
    """The interpreter beside ``det``: the SDK runs in it, and so do tasks."""
    return det_path().with_name("python")
