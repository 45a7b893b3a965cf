"""``resolute smoke-test`` runs a command, says where it fails, and leaves no session behind."""

from __future__ import annotations

from tests.harness.resolute import Resolute
from tests.harness.whole_system import WholeSystem


def test_a_command_is_run_without_a_password(whole_system: WholeSystem) -> None:
    said = Resolute(whole_system.layout.root)("smoke-test", "--master", whole_system.url)
    assert f"a command of admin at {whole_system.url}" in said
    assert ": terminated" in said
    assert said.splitlines()[-1] == "the command ran, ended with 0, and its log has what it printed"
    assert sessions(whole_system) == []


def test_what_goes_wrong_is_said_in_a_sentence(whole_system: WholeSystem) -> None:
    run = Resolute(whole_system.layout.root)
    master = ("--master", whole_system.url)
    assert "there is no active user nobody" in run("smoke-test", *master, "--user", "nobody", code=1)
    refused = run("smoke-test", *master, "--pool", "nowhere", code=1)
    assert "POST /api/v1/commands was refused with" in refused
    assert "nowhere" in refused
    assert "did not end within 0.01 s and was killed" in run("smoke-test", *master, "--timeout", "0.01", code=1)
    assert "http://127.0.0.1:1 does not answer" in run("smoke-test", "--master", "http://127.0.0.1:1", code=1)
    assert "is no address" in run("smoke-test", "--master", "127.0.0.1", code=1)
    assert sessions(whole_system) == []


def sessions(system: WholeSystem) -> list[object]:
    return [*system.rows("select id from user_sessions where description = 'resolute smoke-test'")]
