"""The end of a log file. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_END_BYTES: Final = 64 * 1024


def last_lines(path: Path, lines: int) -> str:
    """The end of a log, without empty lines; "(nothing)" where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
            found = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        found = []
    return "\n".join(found[-lines:]) or "(nothing)"
