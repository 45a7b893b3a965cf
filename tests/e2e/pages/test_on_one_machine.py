"""Pages that a reader follows on one machine: every block is saved or typed, in the order of the page."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.harness.looking import Looking
from tests.harness.pages.blocks import blocks_of, document
from tests.harness.pages.shell import Shell
from tests.harness.processes import REPOSITORY
from tests.harness.whole_system import WholeSystem, running_system
from tests.scenarios.documented_blocks import NOT_TYPED, ONE_MACHINE, blocks_by

pytestmark = pytest.mark.slow

# Two pools, of which one can be bound to workspaces.
CONFIGURATION: Final = """
resource_manager: {{type: process, default_compute_resource_pool: default, default_aux_resource_pool: default}}
resource_pools: [{{pool_name: default}}, {{pool_name: gpus}}]
checkpoint_storage: {{type: shared_fs, host_path: {storage}}}
"""
# For what goes on until somebody stops it. Where tests run in the background, programs are started with SIGINT ignored.
FOR_A_WHILE: Final = """
for_a_while() { timeout --kill-after=20 --signal=INT 2 env --default-signal=INT "$@" || [ $? = 124 ]; }
"""
EVENTS: Final = {"resolute events": "for_a_while resolute events"}


@pytest.fixture(scope="module")
def installation() -> Iterator[WholeSystem]:
    """A new one, which all pages share."""
    # Not in ``/tmp``, where each task has files of its own.
    with tempfile.TemporaryDirectory(prefix="resolute-pages-", dir="/var/tmp") as folder:
        configuration = Path(folder) / "cluster.yaml"
        storage = Path(folder) / "checkpoints"
        storage.mkdir()
        configuration.write_text(CONFIGURATION.format(storage=storage))
        with running_system(slots=4, config=str(configuration)) as system:
            yield system


@pytest.fixture
def shell(installation: WholeSystem, tmp_path: Path) -> Shell:
    """In a folder with what a checkout has after ``make setup``, as far as pages need it."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".venv", ".venv-client"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    environment = {"DET_MASTER": installation.url, "RESOLUTE_STATE": str(installation.layout.root)}
    return Shell(tmp_path, tmp_path / "home", env=environment, prelude=FOR_A_WHILE, skipped=NOT_TYPED)


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
        blocks_by("docs/users.md", ONE_MACHINE),
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


def test_operations(shell: Shell, installation: WholeSystem) -> None:
    (configuration,) = (
        block for block in blocks_of(document("administrators"), "yaml") if block.text.startswith("cluster_name")
    )
    (values,) = blocks_of(document("several-pools"), "yaml")
    (shell.folder / "master.yaml").write_text(configuration.text)
    (shell.folder / "values.yaml").write_text(values.text)
    shell.follow(blocks_by("docs/operations.md", ONE_MACHINE), {"http://127.0.0.1:8080": installation.url})
    assert "as this release needs it" in shell.said_by("resolute db current")


def test_events(shell: Shell) -> None:
    shell("det workspace create told", answers=[""])
    shell.follow(blocks_by("docs/events.md", ONE_MACHINE), EVENTS)


def test_readme(shell: Shell, installation: WholeSystem) -> None:
    shell("resolute up")
    events = ".venv/bin/resolute events"
    shell.follow(
        blocks_by("README.md", ONE_MACHINE),
        {"http://127.0.0.1:8080": installation.url, events: f"for_a_while {events}"},
    )
    assert re.search(
        r"Trial \d+ \(Experiment \d+\) ended by itself", shell.said_by(".venv-client/bin/det experiment create")
    )
    shell("resolute status", code=3)


def test_reverse_proxy(shell: Shell) -> None:
    shell("resolute down")
    shell.follow(blocks_by("docs/reverse-proxy.md", ONE_MACHINE))
    shell("resolute status")


# The last, since its first block ends with the installation.
def test_administrators(shell: Shell, installation: WholeSystem) -> None:
    life, *others = (block for block in blocks_by("docs/administrators.md", ONE_MACHINE) if block.language != "text")
    shell("resolute up")
    shell("det user login admin", answers=[""])
    for name in ("team-a", "team-b", '"vision team"'):
        shell(f"det workspace create {name}")
    experiment = id_in(shell("det experiment create examples/digits/one.yaml examples/digits --paused"), "experiment")
    shell(f"det experiment kill {experiment}")
    shell(f"export TOKEN={installation.token('admin')}")
    shell.follow(others, {"experiments/7": f"experiments/{experiment}"})
    assert '"audit"' in shell.said_by("curl")
    check_audit(shell("resolute audit --since 1h"))
    shell.type(life, EVENTS, {"resolute reset": ["y"]})
    assert not installation.layout.root.exists()


def check_audit(printed: str) -> None:
    """Lines have the form of those on the page."""
    (shown,) = blocks_of(document("administrators"), "text")
    form = re.compile(r"[-\d]{10} [:\d]{8}  \S+ +\S.*  \([A-Z]+ /\S+ from [\d.]+\)")
    for lines in (shown.text, printed):
        assert [line for line in lines.splitlines() if not form.fullmatch(line)] == []
    assert 'created: name="vision team"' in printed
