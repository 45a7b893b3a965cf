"""The command ``resolute`` lists all of its subcommands, and imports the one that is asked for."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from deploy import cli
from deploy.cli import SUBCOMMANDS, Subcommand


@pytest.mark.parametrize("subcommand", SUBCOMMANDS, ids=lambda each: each.name)
def test_subcommand_says_how_it_is_used(subcommand: Subcommand, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--state", "x", subcommand.name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"resolute {subcommand.name}" in said
    assert f"example: {subcommand.example}" in " ".join(said.split())


@pytest.mark.parametrize("subcommand", SUBCOMMANDS, ids=lambda each: each.name)
def test_its_example_can_be_typed(subcommand: Subcommand) -> None:
    program, *argv = subcommand.example.split()
    assert program == "resolute"
    assert callable(cli._parse(argv).run)
    assert subcommand.name in argv


def test_help_needs_no_subcommand_to_be_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = tuple(each._replace(module="not.installed.here") for each in SUBCOMMANDS)
    monkeypatch.setattr(cli, "SUBCOMMANDS", absent)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    said = capsys.readouterr().out
    assert [each.name for each in SUBCOMMANDS if f"  {each.name} " not in said] == []


def test_others_are_not_imported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    absent = tuple(each if each.name == "db" else each._replace(module="not.installed.here") for each in SUBCOMMANDS)
    monkeypatch.setattr(cli, "SUBCOMMANDS", absent)
    with pytest.raises(SystemExit) as ended:
        cli.main(["db", "--help"])
    assert ended.value.code == 0


def test_failure_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--state", str(tmp_path), "events"])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("resolute: nothing runs in")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"resolute {metadata.version('resolute')}\n"


def test_a_wrong_option_prints_the_usage_of_its_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["status", "--jsn"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: resolute status [")
    assert said.endswith("resolute status: error: unrecognized arguments: --jsn\n")


TABLES = {
    "status": ["status"],
    "events": ["events"],
    "import": ["import"],
    "config": ["config", "check", "master.yaml"],
    "doctor": ["doctor"],
    "audit": ["audit"],
    "limits": ["limits", "list"],
    "shares": ["shares", "list"],
    "check": ["check", "experiment.yaml"],
    "why": ["why", "17"],
    "maintenance": ["maintenance", "list"],
}
"""Subcommands that print a table or a list, as one types them."""
SENTENCES = {"up", "down", "reset", "smoke-test", "db", "bus", "backup", "restore", "completion"}
"""Subcommands that say what they have done; ``up`` prints the table of ``status``, which programs ask for there."""


def test_programs_can_read_every_table() -> None:
    assert {each.name for each in SUBCOMMANDS} == TABLES.keys() | SENTENCES
    for name, argv in TABLES.items():
        assert cli._parse([*argv, "--json"]).json is True, name
