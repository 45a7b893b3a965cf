"""No subcommand of ``resolute`` answers with a traceback where its system is stopped, half there or not readable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy import cli
from deploy.cli import SUBCOMMANDS
from deploy.local.layout import Layout, Options
from deploy.local.servers.ports import free_port
from tests.harness.installed_client import client_python
from tests.harness.processes import REPOSITORY

NOT_RUNNING = 3
COMMANDS: dict[str, list[str]] = {
    "up": ["--only-servers", "--python", "/nowhere/python"],
    "status": [],
    "down": [],
    "reset": ["--yes"],
    "events": [],
    "import": ["--source", "postgresql://nobody@127.0.0.1:1/none"],
    "config": ["check", "{state}/config/cluster.yaml"],
    "doctor": [],
    "smoke-test": ["--master", "http://127.0.0.1:1"],
    "audit": [],
    "limits": ["list", "--master", "http://127.0.0.1:1"],
    "shares": ["list", "--master", "http://127.0.0.1:1"],
    "check": ["{state}/none.yaml", "--master", "http://127.0.0.1:1"],
    "why": ["1", "--master", "http://127.0.0.1:1"],
    "maintenance": ["list"],
    "db": ["current"],
    "bus": ["shrink", "--to", "one"],
    "backup": ["{state}/../backup.tar.gz"],
    "restore": ["{state}/../none.tar.gz"],
    "completion": ["bash"],
}


def never_started(_: Path) -> None:
    """There is no folder."""


def half_started(state: Path) -> None:
    """As ``up`` leaves it that was killed before it had written settings."""
    layout = Layout(state)
    layout.create()
    options(layout).save(layout)


def stopped(state: Path) -> None:
    """With settings of servers that do not run."""
    half_started(state)
    settings = {
        "database": {"url": f"postgresql://resolute@127.0.0.1:{free_port()}/resolute", "connect_timeout_s": 0.1},
        "bus": {"url": f"nats://127.0.0.1:{free_port()}", "name": "api", "connect_timeout_s": 0.1},
        "cluster_config": str(state / "config" / "cluster.yaml"),
    }
    (state / "config" / "api.yaml").write_text(json.dumps(settings))
    (state / "config" / "cluster.yaml").write_text("{}")


def broken(state: Path) -> None:
    """Files that say something else than was written."""
    stopped(state)
    for name in ("options.json", "run/plan.json", "status-ports.json", "nats/users.json"):
        (state / name).write_text("{")
    for name in ("api.yaml", "cluster.yaml", "launcher.yaml"):
        (state / "config" / name).write_text("{")


def unreadable(state: Path) -> None:
    """Folders in place of files: nobody can read those, not even root."""
    stopped(state)
    for name in ("options.json", "run/plan.json", "config/api.yaml", "config/cluster.yaml", "nats/users.json"):
        (state / name).unlink(missing_ok=True)
        (state / name).mkdir()


def closed(state: Path) -> None:
    stopped(state)
    state.chmod(0)


def a_file(state: Path) -> None:
    state.write_text("no folder")


def in_a_file(state: Path) -> None:
    """Nothing can be made below it."""
    state.parent.rmdir()
    state.parent.write_text("no folder")


FOLDERS = (never_started, half_started, stopped, broken, unreadable, closed, a_file, in_a_file)


def test_every_subcommand_is_tried() -> None:
    assert list(COMMANDS) == [each.name for each in SUBCOMMANDS]


@pytest.mark.parametrize("prepare", FOLDERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", COMMANDS)
def test_one_sentence_and_no_traceback(
    name: str, prepare: Callable[[Path], None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "below" / "state"
    state.parent.mkdir()
    prepare(state)
    if prepare is closed and os.access(state, os.R_OK):
        pytest.skip("nothing is closed to root: run as another user, or with `setpriv --bounding-set -dac_override`")
    arguments = [each.format(state=state) for each in COMMANDS[name]]
    with pytest.raises(SystemExit) as ended:  # and nothing else
        cli.main(["--state", str(state), name, *arguments])
    said = capfd.readouterr()
    assert ended.value.code in {0, 1, NOT_RUNNING}
    assert "Traceback" not in said.out + said.err
    if ended.value.code == 1 and name not in {"doctor", "config"}:  # these print what they find
        assert said.err.count("resolute: ") == 1
        assert len(said.err.splitlines()) <= 2
    if prepare is closed:
        state.chmod(0o700)


@pytest.mark.parametrize("name", ["doctor", "audit", "db"])
def test_a_folder_that_was_never_started_is_said_to_be_one(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in [each for each in os.environ if each.startswith("RESOLUTE_")]:
        monkeypatch.delenv(variable)
    with pytest.raises(SystemExit) as ended:
        cli.main(["--state", str(tmp_path), name, *COMMANDS[name]])
    assert ended.value.code == 1
    assert f"resolute: nothing was ever started in {tmp_path}" in capsys.readouterr().err


def test_up_suggests_the_key_that_was_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "master.yaml"
    config.write_text("resource_manger: {type: process}")
    with pytest.raises(SystemExit):
        cli.main(["--state", str(tmp_path / "state"), "up", "--config", str(config), "--python", str(client_python())])
    assert "resource_manger: nothing of this name is known; did you mean resource_manager?" in capsys.readouterr().err


def test_make_says_which_python_is_needed(tmp_path: Path) -> None:
    argv = ["make", f"VENV={tmp_path}", "PYTHON=/bin/false", f"{tmp_path}/.installed"]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed, and /bin/false is none: make setup PYTHON=" in done.stderr
    assert not list(tmp_path.iterdir())


def options(layout: Layout) -> Options:
    return Options(
        api_port=free_port(),
        nats_port=free_port(),
        postgres_port=free_port(),
        logs_port=free_port(),
        postgres_data=str(layout.root / "postgres"),
        postgres_password="",
        python=sys.executable,
        slots=1,
    )
