"""Pages that a reader follows on one machine: every block is saved or typed, in the order of the page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.looking import Looking
from tests.harness.pages.blocks import blocks_of, document
from tests.harness.pages.shell import Shell
from tests.harness.processes import REPOSITORY
from tests.harness.whole_system import WholeSystem, running_system

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installation() -> Iterator[WholeSystem]:
    """A new one, which all pages share."""
    with running_system(slots=4) as system:
        yield system


@pytest.fixture
def shell(installation: WholeSystem, tmp_path: Path) -> Shell:
    """In a folder with what a checkout has after ``make setup``, as far as pages need it."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".venv", ".venv-client"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    environment = {"DET_MASTER": installation.url, "RESOLUTE_STATE": str(installation.layout.root)}
    return Shell(tmp_path, tmp_path / "home", env=environment, skipped=["pip install"])


def id_in(printed: str, before: str) -> str:
    """The id that was printed behind some words."""
    found = re.search(rf"{before} (\S+)", printed)
    assert found is not None, printed
    return found[1]


def checkpoint(shell: Shell) -> str:
    """One whose files are there."""
    (row, *_) = shell("det experiment list-checkpoints 1 --csv | grep COMPLETED").splitlines()
    return next(cell for cell in row.split(",") if re.fullmatch(r"[0-9a-f-]{36}", cell))


# The first, since the experiment of the page is the first of an installation.
def test_users(shell: Shell, installation: WholeSystem) -> None:
    assert shell("det --version").split()[-1] == "0.38.1"
    shell.follow(
        blocks_of(document("users")),
        {
            "http://127.0.0.1:8080": installation.url,
            "UUID": checkpoint,
            "TASK": lambda shell: id_in(shell.said_by("det task create job.yaml"), "Created task"),
            "CHANGED": lambda shell: id_in(shell.said_by("det task create changes.yaml"), "Created task"),
            # The programs that they run are those of tests/e2e/interactive.
            "notebook start": "notebook start --detach",
            "shell start": "shell start --detach",
            "tensorboard start": "tensorboard start --detach",
        },
        {"det user login": [""]},
    )
    assert "Created experiment 1\n" in shell.said_by("det experiment create first.yaml .")
    assert "COMPLETED" in shell.said_by("det experiment describe 1")
    (best,) = (shell.folder.parent / "best").iterdir()
    assert {path.name for path in best.iterdir()} >= {"metadata.json", "state.npz"}
    for command in ("det cmd run", "det task create job.yaml"):
        assert re.search(r"files: .*\bcheck\.py", shell.said_by(command))
    with installation.http() as http:
        look = Looking(http)
        assert look.get("/models/mnist")["model"]["workspaceId"] != 1
        assert look.experiment(2)["config"]["resources"]["max_slots"] == 2
    shell("det experiment create ports.yaml . --paused")
