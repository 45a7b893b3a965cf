"""Measures how much memory is left for what is useful, but not needed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

STANDBY_NEEDS: Final = 2 << 30
"""Bytes that have to be available for a second scheduler, which takes a twentieth of them: tasks want the rest."""


def has_room_for_standby(*, root: Path = Path("/")) -> bool:
    """Whether a process more does no harm to the tasks of this machine, or of the container that this is.

    root  where ``/proc`` and ``/sys`` are found
    """
    return min(_of_machine(root), _of_container(root)) >= STANDBY_NEEDS


def _of_machine(root: Path) -> float:
    for line in (root / "proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return 0


def _of_container(root: Path) -> float:
    """What the limit of our control group leaves; without one, no limit (cgroups(7), version 2)."""
    group = root / "sys/fs/cgroup"
    try:
        limit, used = (group / "memory.max").read_text().strip(), (group / "memory.current").read_text()
    except FileNotFoundError:
        return float("inf")
    return float("inf") if limit == "max" else int(limit) - int(used)
