"""Processes that the supervisor of a state folder starts again and again, because each ends soon after its start.

They are known by the records that the supervisor writes. Standard library only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from deploy import process_records
from deploy.last_lines import last_lines
from deploy.process_records import HEALTHY_AFTER_S, LONGEST_DELAY_S, ProcessRecord

FAILURES: Final = 3
"""So many in a row are no coincidence."""
_SUPERVISOR: Final = "supervisor"
_LONGEST_LINE: Final = 300


def restarting(state: Path, *, now: Callable[[], float] = time.time) -> dict[str, str]:
    """The last line of the log of each such process, by its name. Nothing while no supervisor runs."""
    if not runs(state, _SUPERVISOR):
        return {}
    return {
        name: last_lines(state / "logs" / f"{name}.log", 1)[:_LONGEST_LINE]
        for name in planned(state)
        if failures(state, name, now=now) >= FAILURES
    }


def failures(state: Path, name: str, *, now: Callable[[], float] = time.time) -> int:
    """How many starts in a row have come to nothing; 0 for a process that has run for a while, or was stopped."""
    record = _recorded(state, name)
    if record is None:
        return 0
    is_running = process_records.is_running(record)
    if now() - record.since > HEALTHY_AFTER_S + (0.0 if is_running else LONGEST_DELAY_S):
        return 0
    return record.failures if is_running else record.failures + 1


def runs(state: Path, name: str) -> bool:
    """Whether the process that was recorded under this name runs."""
    record = _recorded(state, name)
    return record is not None and process_records.is_running(record)


def planned(state: Path) -> list[str]:
    """Names of the processes in the plan of the supervisor, in the order of starting; none when there is no plan."""
    try:
        return [str(entry["name"]) for entry in json.loads((state / "run" / "plan.json").read_text())]
    except (OSError, ValueError):
        return []


def in_words(found: Mapping[str, str]) -> list[str]:
    """One sentence for each."""
    return [f"{name} restarts again and again; the last line of its log: {line}" for name, line in found.items()]


def _recorded(state: Path, name: str) -> ProcessRecord | None:
    with suppress(OSError):  # a file that cannot be read is as good as none
        return process_records.read(state / "run" / f"{name}.json")
    return None
