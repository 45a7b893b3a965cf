"""Disks of the state folder of ``resolute up``: whether PostgreSQL, NATS and tasks have space left there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from deploy.file_systems import FileSystem, file_system
from deploy.operations.doctor.findings import Finding, ok, problem, warning

PART: Final = "disk"
LITTLE_BYTES: Final = 2**30
LITTLE_PART: Final = 0.05
_CHOSEN_BY_UP: Final = Path("options.json")
_STREAMS: Final = Path("nats", "jetstream")


def check_disks(state: Path) -> list[Finding]:
    """One finding for each file system; nothing where there is no state folder."""
    found = {each.mount_point: each for each in map(file_system, _places(state))}
    return [about_disk(each) for each in found.values()]


def about_disk(disk: FileSystem) -> Finding:
    """Pure."""
    if disk.is_full:
        remedy = "free some space there: what waits for it goes on by itself"
        return problem(PART, f"the file system {disk} is full", remedy=remedy)
    if disk.free_bytes < min(LITTLE_BYTES, LITTLE_PART * disk.total_bytes):
        remedy = "free some space there before everything has to wait for it"
        return warning(PART, f"the file system {disk} is nearly full", remedy=remedy)
    return ok(PART, f"the file system {disk} has space")


def _places(state: Path) -> Iterable[Path]:
    try:
        options = json.loads((state / _CHOSEN_BY_UP).read_text())
        database = Path(options["postgres_data"])
    except OSError:
        return ()
    except (ValueError, TypeError, KeyError):  # it is broken, and the disk may be why
        return (state, state / _STREAMS)
    return (state, state / _STREAMS, database)
