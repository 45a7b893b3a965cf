"""The lines of ``docs/operations.md`` for upgrade, backup and restore of one machine do what the page says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.local.layout import Layout, Options
from tests.harness.looking import Looking
from tests.harness.pages.blocks import blocks_of, document
from tests.harness.pages.shell import Shell
from tests.harness.whole_system import WholeSystem, state_folder
from tests.programs import submit

SECTIONS = ("Upgrading one machine", "Backup", "Restoring one machine")


@pytest.fixture
def shell() -> Iterator[Shell]:
    with state_folder() as state:
        state.symlink_to(state.parent / ".resolute")  # what is there in the end is cleaned up
        yield Shell(state.parent, state.parent / "home")


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

    page = blocks_of(document("operations"), "sh")
    for section in SECTIONS:
        shell.follow([block for block in page if block.heading == section])
    assert seen(shell.folder, experiment) == before
    (kept,) = (path for path in layout.checkpoints.iterdir() if path.name == before["checkpoints"][0]["uuid"])
    assert (kept / "step").read_text() == "2"
    assert "as this release needs it" in shell.said_by("resolute db current")
    assert f"looked for in {layout.checkpoints}" in shell.said_by("resolute restore")
