"""The lines of ``docs/operations.md`` for upgrade, backup and restore of one machine do what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.local.layout import Layout, Options
from tests.harness.installed_client import client_python
from tests.harness.looking import Looking
from tests.harness.processes import REPOSITORY
from tests.harness.whole_system import WholeSystem, state_folder
from tests.programs import submit

PAGE = (REPOSITORY / "docs" / "operations.md").read_text()
SECTIONS = ("Upgrading one machine", "Backup", "Restoring one machine")


class Shell:
    """Somebody in a folder, with ``resolute`` on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "RESOLUTE_TASK_PYTHON": str(client_python())}
        self._environment.pop("RESOLUTE_STATE", None)

    def __call__(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def shell() -> Iterator[Shell]:
    with state_folder() as state:
        state.symlink_to(state.parent / ".resolute")  # what is there in the end is cleaned up
        yield Shell(state.parent)


def lines(section: str) -> list[str]:
    text = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    found = next(part for part in text if part.startswith(f"{section}\n"))
    return [line for block in re.findall(r"^```sh\n(.*?)^```", found, re.M | re.S) for line in block.splitlines()]


def seen(folder: Path, experiment: int) -> dict[str, Any]:
    """What clients see of an experiment."""
    layout = Layout(folder / ".resolute")
    options = Options.load(layout)
    assert options is not None
    system = WholeSystem(layout, options, folder / "homes")
    with system.http() as http:
        look = Looking(http)
        trial = look.trial(experiment)
        return {
            "experiment": look.experiment(experiment),
            "trial": trial,
            "steps": look.steps(trial["id"]),
            "log": look.printed(trial["id"]),
            "checkpoints": look.get(f"/experiments/{experiment}/checkpoints")["checkpoints"],
            "listed": system.det()("experiment", "list"),
        }


@pytest.mark.slow
def test_page_upgrades_backs_up_and_restores(shell: Shell) -> None:
    up = shell("resolute up --port 0 --slots 2 --standby no --passwords blank")
    layout = Layout(shell.folder / ".resolute")
    options = Options.load(layout)
    assert options is not None
    assert options.master_url in up
    system = WholeSystem(layout, options, shell.folder / "homes")
    experiment = submit(system.det(), "steps.py", hyperparameters={"steps": 2, "pause_s": 0})
    with system.http() as http:
        Looking(http).wait(experiment)
    before = seen(shell.folder, experiment)
    assert before["steps"] == [1, 2]
    assert len(before["checkpoints"]) == 1

    said = {line: shell(line) for section in SECTIONS for line in lines(section)}
    assert seen(shell.folder, experiment) == before
    (kept,) = (path for path in layout.checkpoints.iterdir() if path.name == before["checkpoints"][0]["uuid"])
    assert (kept / "step").read_text() == "2"
    assert "as this release needs it" in said["resolute db current"]
    restored = next(output for line, output in said.items() if line.startswith("resolute restore"))
    assert f"looked for in {layout.checkpoints}" in restored
