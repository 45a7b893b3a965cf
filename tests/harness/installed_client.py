"""Where the unmodified client is installed, and the programs that interactive tasks run."""

from __future__ import annotations

import os
import shutil
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


def interactive_python() -> Path:
    """An interpreter with the client, JupyterLab and TensorBoard, for tasks. Skips the test when there is none."""
    path = Path(os.environ.get("RESOLUTE_INTERACTIVE_PYTHON") or REPOSITORY / ".venv-interactive" / "bin" / "python")
    if not path.exists():
        pytest.skip("needs JupyterLab and TensorBoard: `make setup-interactive` installs them")
    return path


def need_ssh() -> None:
    """Skip the test where there is no ssh, or no server for it."""
    missing = [name for name in ("ssh", "/usr/sbin/sshd", "scp", "rsync") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: `apt-get install openssh-server openssh-client rsync`")
