"""Starts the processes that outlive the launcher: supervisors and shippers, in sessions of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import services
from services.launcher import files as scripts
from services.launcher.backends.process.records import AllocationFiles, PodFiles

PYTHON: Final = os.path.realpath(sys.executable)
"""Runs what needs the standard library only; not that of a virtual environment, which tasks may not see."""
IMPORT_ROOT: Final = str(Path(services.__path__[0]).resolve().parent)
SHIP_SCRIPT: Final = str(Path(scripts.__file__).with_name("ship.py"))


def spawn_supervisor(files: AllocationFiles) -> subprocess.Popen[bytes]:
    module = "services.launcher.backends.process.supervision.supervisor"
    return _spawn([PYTHON, "-S", "-E", "-s", "-m", module, str(files.root)], files.supervisor_log)


def spawn_shipper(files: PodFiles, flags: Sequence[str]) -> subprocess.Popen[bytes]:
    return _spawn([PYTHON, "-I", "-S", SHIP_SCRIPT, *flags], files.ship / "ship.log")


def _spawn(argv: Sequence[str], output_path: Path) -> subprocess.Popen[bytes]:
    with output_path.open("ab") as output:
        return subprocess.Popen(  # noqa: S603  our own scripts
            argv,
            cwd=IMPORT_ROOT,
            # Secrets of the launcher have no business in the environment of what runs beside tasks.
            env={name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
