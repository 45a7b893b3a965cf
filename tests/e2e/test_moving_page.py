"""The page about moving from Determined, as somebody follows it on one machine: its commands, typed in their order."""

from __future__ import annotations

import os
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
from libs.db.connecting.settings import asyncpg_url
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.determined.rows import FINISHED, PASSWORD, UNFINISHED
from tests.harness.pages.blocks import Block, blocks_of, document
from tests.harness.pages.shell import Shell
from tests.harness.processes import REPOSITORY
from tests.harness.whole_system import WholeSystem, state_folder
from tests.integration.api.conftest import run_async
from tests.integration.determined_import.conftest import make_old
from tests.integration.determined_import.test_repeating import run

TYPED: Final = r"""
set -eu
# A port that nobody else has, and one scheduler; the page says the rest.
resolute() {
  if [ "$1" = up ]; then shift; set -- up --port 0 --standby no --passwords blank "$@"; fi
  "$PYTHON" -m deploy.cli "$@"
}
"""


def typed(block: Block, named: Mapping[str, str], state: Path, *, first: str = "") -> str:
    """What a shell prints that is given a block in which some names are those of this test."""
    for name in named:
        assert name in block.text, f"{name} is no longer in: {block.text}"
    environment = {"PYTHON": sys.executable, "RESOLUTE_STATE": str(state)}
    environment["PATH"] = f"{find_postgres_bin()}:{os.environ['PATH']}"
    shell = Shell(REPOSITORY, state.parent / "home", env=environment, prelude=TYPED)
    shell(first)
    shell.type(block, named)
    return "".join(shell.said.values())


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
    blocks = [block for block in blocks_of(document("moving-from-determined"), "sh") if "resolute" in block.text]
    assert [block.heading for block in blocks] == ["On one machine", "Elsewhere", "From a dump", "Importing again"]
    page = {block.heading: block for block in blocks}
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
    connected = f"export RESOLUTE_DATABASE__URL={new}"
    typed(page["From a dump"], from_dump, tmp_path / "nothing here", first=connected)
