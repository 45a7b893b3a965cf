"""Linked users whose tasks could not start are named before they submit one."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.operations.doctor.findings import Finding
from deploy.operations.doctor.tasks.interpreters import about_interpreters
from services.launcher.backends.process.preparation.interpreter import closed_to_others


@pytest.mark.parametrize(
    ("users", "closed", "levels"),
    [
        (0, {"/root/python": "/root"}, []),
        (2, {"/usr/bin/python3": None}, ["ok"]),
        (1, {"/root/python": "/root", "/usr/bin/python3": None}, ["problem"]),
    ],
)
def test_only_closed_interpreters_of_linked_users_are_problems(
    users: int, closed: dict[str, str | None], levels: list[str]
) -> None:
    found: list[Finding] = about_interpreters(users, closed)
    assert [each.level for each in found] == levels
    assert all("/root keeps them from /root/python" in each.says for each in found if each.level == "problem")


def test_what_is_closed_is_found_behind_links(tmp_path: Path) -> None:
    assert closed_to_others("/bin/sh") is None
    program = tmp_path / "program"
    program.touch(0o700)
    (tmp_path / "link").symlink_to(program)
    for directory in [tmp_path, *tmp_path.parents]:
        if not directory.stat().st_mode & 0o001:
            assert closed_to_others(str(program)) == closed_to_others(f"{tmp_path}/link") is not None
            return
    assert closed_to_others(f"{tmp_path}/link") == str(program)
