"""A changed password of the administrator is changed in the database before anything connects with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from deploy import cli
from deploy.local.servers.ports import free_port
from libs.db.connecting.settings import asyncpg_url
from tests.harness import PostgresServer


@pytest.fixture(scope="module")
def guarded_server(server_directory: Path) -> Iterator[PostgresServer]:
    """A server that asks for a password."""
    server = PostgresServer(server_directory / f"pg-{uuid4().hex[:8]}", password="first", dies_with_parent=True)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def with_password(server: PostgresServer, password: str) -> str:
    return asyncpg_url(server.url()).replace(":first@", f":{password}@")


def opens(url: str) -> bool:
    async def connect() -> bool:
        try:
            await (await asyncpg.connect(url)).close()
        except asyncpg.InvalidPasswordError:
            return False
        return True

    return asyncio.run(connect())


def run(monkeypatch: pytest.MonkeyPatch, action: str, *, wanted: str, former: str) -> object:
    monkeypatch.setenv("RESOLUTE_DATABASE__URL", wanted)
    monkeypatch.setenv("RESOLUTE_FORMER_DATABASE_URL", former)
    monkeypatch.setenv("RESOLUTE_DATABASE__CONNECT_TIMEOUT_S", "1")
    with pytest.raises(SystemExit) as ended:
        cli.main(["db", action])
    return ended.value.code


def test_an_upgrade_changes_the_password_and_a_rollback_changes_it_back(
    guarded_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = with_password(guarded_server, "first"), with_password(guarded_server, "s%C3%A9cond%2F%27%25")
    for _ in range(2):  # a Job may be repeated
        assert run(monkeypatch, "upgrade", wanted=second, former=first) == 0
        assert (opens(first), opens(second)) == (False, True)
    assert run(monkeypatch, "password", wanted=first, former=second) == 0
    assert (opens(first), opens(second)) == (True, False)
    assert "the password was changed in the database" in capsys.readouterr().out

    other = with_password(guarded_server, "other")
    assert run(monkeypatch, "upgrade", wanted=other, former=second) == 1
    said = capsys.readouterr().err
    assert "neither the configured password of the role resolute nor the one before opens the database" in said
    assert opens(first)


def test_a_database_that_does_not_answer_does_not_hold_a_rollback_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = f"postgresql://resolute:first@127.0.0.1:{free_port()}/resolute"
    assert run(monkeypatch, "password", wanted=nobody.replace("first", "second"), former=nobody) == 0
    assert "the password is left as it is" in capsys.readouterr().out
