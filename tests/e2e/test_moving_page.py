"""The page about moving from Determined, as somebody follows it on one machine: its commands, typed in their order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from uuid import uuid4

import httpx
import pytest

from deploy.local.layout import Layout, Options
from deploy.local.servers.postgres import find_postgres_bin
from libs.db.engine import asyncpg_url
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.determined.rows import FINISHED, PASSWORD, UNFINISHED
from tests.harness.installed_client import client_python
from tests.harness.processes import REPOSITORY
from tests.harness.whole_system import WholeSystem, state_folder
from tests.integration.api.conftest import run_async
from tests.integration.determined_import.conftest import make_old
from tests.integration.determined_import.test_repeating import run

PAGE: Final = REPOSITORY / "docs" / "moving-from-determined.md"
TYPED: Final = r"""
set -eu
# A port that nobody else has, and one scheduler; the page says the rest.
resolute() {
  if [ "$1" = up ]; then shift; set -- up --port 0 --standby no --passwords blank "$@"; fi
  "$PYTHON" -m deploy.cli "$@"
}
"""


def blocks() -> dict[str, str]:
    """Commands of the page by the heading that they are below; what the page has to say of a place is unique there."""
    found: dict[str, str] = {}
    for section in re.split(r"^#+ ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        fenced = re.findall(r"^( *)```sh\n(.*?)^ *```", section, re.MULTILINE | re.DOTALL)
        if fenced:
            assert len(fenced) == 1, f"{heading}: one block each, so that this test types all of them"
            found[heading] = fenced[0][1]
    return found


def typed(commands: str, named: Mapping[str, str], state: Path) -> str:
    """What a shell prints that is given commands in which some names are those of this test."""
    for name, ours in named.items():
        assert name in commands, f"{name} is no longer in: {commands}"
        commands = commands.replace(name, ours)
    environment = {**os.environ, "PYTHON": sys.executable, "RESOLUTE_STATE": str(state)}
    environment["RESOLUTE_TASK_PYTHON"] = str(client_python())
    environment["PATH"] = f"{find_postgres_bin()}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", TYPED + commands],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def old(postgres_server: PostgresServer | ContainerPostgres, tmp_path: Path) -> Iterator[str]:
    """The database of an old installation."""
    name = f"old_{uuid4().hex[:12]}"
    postgres_server.execute(f"CREATE DATABASE {name}")
    run_async(make_old(postgres_server.url(name), tmp_path / "checkpoints"))
    yield asyncpg_url(postgres_server.url(name))
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def databases(postgres_server: PostgresServer | ContainerPostgres) -> Iterator[list[str]]:
    """Two empty ones."""
    names = [f"empty_{uuid4().hex[:12]}" for _ in range(2)]
    for name in names:
        postgres_server.execute(f"CREATE DATABASE {name}")
    yield [asyncpg_url(postgres_server.url(name)) for name in names]
    for name in names:
        postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def state() -> Iterator[Path]:
    with state_folder() as folder:
        yield folder


def seen(state: Path) -> dict[int, str]:
    """Experiment -> state, as one of the old users finds them with her old password."""
    layout = Layout(state)
    options = Options.load(layout)
    assert options is not None
    system = WholeSystem(layout, options, state.parent / "homes")
    headers = {"Authorization": f"Bearer {system.token('ada', PASSWORD)}"}
    with httpx.Client(base_url=system.url, headers=headers, timeout=60) as http:
        return {each["id"]: each["state"] for each in http.get("/api/v1/experiments").json()["experiments"]}


@pytest.mark.slow
def test_the_page_can_be_followed_on_one_machine(old: str, databases: list[str], state: Path, tmp_path: Path) -> None:
    page = blocks()
    assert list(page) == ["On one machine", "Elsewhere", "From a dump", "Importing again"]
    from_old = {"postgresql://reader@old-host:5432/determined": old}
    said = typed(page["On one machine"], from_old, state)
    assert "Everything is there." in said
    assert seen(state)[UNFINISHED] == "STATE_PAUSED"

    run_async(run(old, f"UPDATE experiments SET state = 'CANCELED' WHERE id = {FINISHED}"))
    typed(page["Importing again"], from_old, state)
    assert seen(state)[FINISHED] == "STATE_CANCELED"

    new, scratch = databases
    into_new = {"postgresql://resolute:...@new-host:5432/resolute": new}
    typed(page["Elsewhere"], {**from_old, **into_new}, tmp_path / "nothing here")
    subprocess.run([find_postgres_bin() / "pg_dump", "--format=custom", "-f", tmp_path / "dump", "-d", old], check=True)
    from_dump = {"determined.dump": str(tmp_path / "dump"), "postgresql://me@localhost/scratch": scratch}
    typed(f"export RESOLUTE_DATABASE__URL={new}\n" + page["From a dump"], from_dump, tmp_path / "nothing here")
