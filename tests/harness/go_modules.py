"""Files of other projects that are published as Go modules, for tests that compare with them; none is kept here."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest


@cache
def module_folder(module: str) -> Path:
    """Folder with the files of a module such as ``example.com/thing@v1.2.3``, in the cache of Go; fetched once.

    The test is skipped, with the way to get it, where there is no Go.
    """
    go = shutil.which("go")
    if go is None:
        pytest.skip(
            f"needs Go on the PATH (https://go.dev/dl), which gets what is compared: `go mod download {module}`"
        )
    done = subprocess.run(
        [go, "mod", "download", "-json", module], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"go mod download {module} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return Path(json.loads(done.stdout)["Dir"])
