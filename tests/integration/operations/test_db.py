"""``resolute db upgrade | current`` on a database that has nothing yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from deploy import cli
from deploy.operations.db import OUTDATED
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres

Run = Callable[..., tuple[object, str]]


@pytest.fixture
def resolute(
    postgres_server: PostgresServer | ContainerPostgres,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Run]:
    name = f"empty_{uuid4().hex[:12]}"
    postgres_server.execute(f"CREATE DATABASE {name}")
    monkeypatch.setenv("RESOLUTE_DATABASE__URL", postgres_server.url(name))

    def run(*argv: str) -> tuple[object, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(argv)
        return ended.value.code, capsys.readouterr().out

    yield run
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_upgrade_says_from_where_to_where(resolute: Run) -> None:
    code, said = resolute("db", "current")
    assert (code, said) == (OUTDATED, "the schema is missing; this release needs 0001: resolute db upgrade\n")
    assert resolute("db", "upgrade") == (0, "the schema was missing, and is 0001 now\n")
    for action in ("upgrade", "current"):
        assert resolute("db", action) == (0, "the schema is 0001, as this release needs it\n")
