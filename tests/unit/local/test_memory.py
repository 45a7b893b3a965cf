"""A second scheduler is started where there is memory for one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from deploy.local.memory import has_room_for_standby

GIB = 1 << 30


class Case(NamedTuple):
    name: str
    available: int
    limit: str | None
    used: int
    room: bool


CASES = [
    Case("a machine with plenty", 8 * GIB, None, 0, True),
    Case("a small machine", GIB, None, 0, False),
    Case("a container without a limit", 8 * GIB, "max", 30 * GIB, True),
    Case("a container that is nearly full", 8 * GIB, str(4 * GIB), 3 * GIB, False),
    Case("a container with room", 8 * GIB, str(8 * GIB), GIB, True),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_room_for_a_standby(case: Case, tmp_path: Path) -> None:
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:   {case.available // 1024} kB\n")
    if case.limit is not None:
        (group / "memory.max").write_text(f"{case.limit}\n")
        (group / "memory.current").write_text(f"{case.used}\n")
    assert has_room_for_standby(root=tmp_path) is case.room
