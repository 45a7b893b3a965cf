"""The interpreter of tasks is found, with all that it needs, wherever it lies."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from libs.errors import InvalidRequest
from services.launcher.backends.process.preparation.interpreter import (
    find_python,
    installation_roots,
    needed_directories,
)


def script(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_interpreter_is_followed_through_its_links(tmp_path: Path) -> None:
    for name in ("base/bin", "middle/bin", "venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "base/bin/python3").touch()
    (tmp_path / "middle/bin/python").symlink_to(tmp_path / "base/bin/python3")
    (tmp_path / "venv/bin/python").symlink_to("../../middle/bin/python")
    assert installation_roots(str(tmp_path / "venv/bin/python")) == [
        str(tmp_path / name) for name in ("base", "base/bin", "middle", "middle/bin", "venv", "venv/bin")
    ]


async def test_script_shows_what_the_interpreter_behind_it_needs(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    (tmp_path / "modules").mkdir()
    python = script(
        tmp_path / "given" / "bin" / "python",
        f'PYTHONPATH="{tmp_path}/modules:{tmp_path}/nowhere" exec {tmp_path}/venv/bin/python "$@"',
    )
    found = await needed_directories(python, {})
    assert {str(tmp_path / name) for name in ("given", "venv", "modules")} <= set(found)
    assert str(tmp_path / "nowhere") not in found
    assert sys.base_prefix in found
    assert "/" not in found


@pytest.mark.parametrize("text", ["exit 1", "echo '[1'", "echo 1"])
async def test_interpreter_that_does_not_answer_is_left_to_the_first_task(tmp_path: Path, text: str) -> None:
    python = script(tmp_path / "given" / "bin" / "python", text)
    assert await needed_directories(python, {}) == (f"{tmp_path}/given", f"{tmp_path}/given/bin")


def test_missing_interpreter_is_named() -> None:
    with pytest.raises(InvalidRequest, match="/nowhere/python"):
        find_python("/nowhere/python")
