"""The command goes on where it was killed, and says by its exit code whether both sides agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from deploy.local.servers.postgres import find_postgres_bin
from libs.db.connecting.settings import asyncpg_url
from tests.harness.determined.rows import add_metrics
from tests.harness.processes import REPOSITORY
from tests.integration.api.conftest import run_async

MANY_METRICS = 150_000
COMMAND = (sys.executable, "-m", "deploy.cli", "import", "--json")


def environment(source: str, target: str) -> dict[str, str]:
    return {**os.environ, "RESOLUTE_IMPORT_SOURCE": source, "RESOLUTE_DATABASE__URL": asyncpg_url(target)}


def import_all(source: str, target: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(source, target),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def import_until(kind: str, source: str, target: str) -> None:
    """Begin an import, and kill it when it says that it is at a kind."""
    process = subprocess.Popen(
        COMMAND,
        env=environment(source, target),
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        assert any(line.startswith(f"{kind}:") for line in process.stderr)
        process.kill()


@pytest.fixture(scope="module")
def large_url(old_url: str) -> str:
    """The old installation with more metrics than one batch."""

    async def add() -> None:
        connection = await asyncpg.connect(asyncpg_url(old_url))
        try:
            await add_metrics(connection, MANY_METRICS)
        finally:
            await connection.close()

    run_async(add())
    return old_url


def test_an_import_that_was_killed_goes_on_and_comes_to_the_same(
    large_url: str, new_url: str, database_url: str
) -> None:
    whole = import_all(large_url, database_url)
    assert whole.returncode == 0, whole.stderr
    for kind in ("users", "experiments", "metrics"):
        import_until(kind, large_url, new_url)
    rest = import_all(large_url, new_url)
    assert rest.returncode == 0, rest.stderr
    assert "users:" not in rest.stderr, "what is there is not read again"
    assert json.loads(rest.stdout) == json.loads(whole.stdout)
    metrics = next(each for each in json.loads(rest.stdout)["kinds"] if each["kind"] == "metrics")
    assert metrics["in_target"] == MANY_METRICS + 9


def test_what_both_sides_have_changed_is_named_with_a_code_of_its_own(old_url: str, new_url: str) -> None:
    async def rename(url: str, name: str) -> None:
        connection = await asyncpg.connect(asyncpg_url(url))
        try:
            await connection.execute("UPDATE models SET name = $1", name)
        finally:
            await connection.close()

    assert import_all(old_url, new_url).returncode == 0
    run_async(rename(old_url, "there"))
    run_async(rename(new_url, "here"))
    again = import_all(old_url, new_url)
    run_async(rename(old_url, "mnist"))
    assert again.returncode == 3, again.stderr
    models = next(each for each in json.loads(again.stdout)["kinds"] if each["kind"] == "models")
    assert models["named"] == {"it has changed here and there": ["(8)"]}


def test_what_stands_in_the_way_is_said_in_one_line(new_url: str) -> None:
    refused = import_all(new_url, new_url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("resolute: the old database cannot be read as one of Determined 0.38")


@pytest.mark.parametrize("dump_format", ["plain", "custom"])
def test_a_dump_is_imported(
    old_url: str,
    new_url: str,
    empty_database_url: str,
    tmp_path: Path,
    dump_format: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs = find_postgres_bin()
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    dump = tmp_path / "dump"
    subprocess.run(
        [programs / "pg_dump", f"--format={dump_format}", "-f", dump, "-d", asyncpg_url(old_url)],
        check=True,
        timeout=120,
    )
    done = import_all(empty_database_url, new_url, "--dump", str(dump))
    assert done.returncode == 0, done.stderr


def test_a_program_that_is_missing_is_named(
    new_url: str, empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    dump = tmp_path / "dump"
    dump.write_bytes(b"PGDMP")
    refused = import_all(empty_database_url, new_url, "--dump", str(dump))
    assert refused.returncode == 1
    assert "pg_restore is not on the PATH" in refused.stderr
