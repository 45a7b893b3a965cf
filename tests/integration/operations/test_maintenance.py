"""``resolute maintenance``, as the page of the queue shows it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import pytest

from deploy import cli
from tests.harness.pages.blocks import blocks_of, document

Run = Callable[..., tuple[object, str]]
FIRST = "node node3 is under maintenance from 2030-01-31 12:00 UTC to 2030-01-31 14:00 UTC: new switches"


@pytest.fixture
def resolute(database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("RESOLUTE_DATABASE__URL", database_url)

    def run(*argv: str) -> tuple[object, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(argv)
        said = capsys.readouterr()
        return ended.value.code, said.out + said.err

    return run


def test_the_commands_of_the_page(resolute: Run) -> None:
    page = next(block for block in blocks_of(document("scheduling"), "sh") if block.heading == "Maintenance")
    said = [resolute(*shlex.split(line)[1:]) for line in page.text.splitlines()]
    nodes = "nodes node3, node4 are under maintenance from 2030-01-31 12:00 UTC to 2030-01-31"
    pool = "2  resource pool default is under maintenance from 2030-02-01 12:00 UTC to 2030-02-01 14:00 UTC\n"
    assert said == [
        (0, f"1  {nodes} 14:00 UTC: new switches\n"),
        (0, pool),
        (0, f"1  {nodes} 14:00 UTC: new switches\n{pool}"),
        (0, f"1  {nodes} 18:00 UTC: new switches\n"),
        (0, pool),
    ]
    assert resolute("maintenance", "list") == (0, f"1  {nodes} 18:00 UTC: new switches\n")


def test_a_window_becomes_that_of_a_pool_and_of_nodes_again(resolute: Run) -> None:
    times = ("--from", "2030-01-31T12:00:00Z", "--to", "2030-01-31T14:00:00Z")
    code, said = resolute("maintenance", "add", "--json", "--nodes", "node3", *times, "--message", "new switches")
    assert code == 0
    made = json.loads(said)
    ident = str(made.pop("id"))
    assert made == {
        "pool": "",
        "nodes": ["node3"],
        "starts_at": "2030-01-31T12:00:00Z",
        "ends_at": "2030-01-31T14:00:00Z",
        "message": "new switches",
    }
    assert "resource pool default is" in resolute("maintenance", "change", ident, "--pool", "default")[1]
    assert resolute("maintenance", "change", ident, "--nodes", "node3") == (0, f"{ident}  {FIRST}\n")
    assert resolute("maintenance", "remove", ident) == (0, f"{ident}  {FIRST}\n")
    assert resolute("maintenance", "remove", ident) == (1, f"resolute: maintenance '{ident}' not found\n")


def test_what_makes_no_sense_is_refused(resolute: Run) -> None:
    times = ("--from", "2030-01-31T12:00:00Z", "--to", "2030-01-31T12:00:00Z")
    refused = resolute("maintenance", "add", "--pool", "default", *times)
    assert refused == (1, "resolute: endTime: must be after startTime\n")
    code, said = resolute("maintenance", "add", "--pool", "default", "--from", "soon", "--to", "2030-01-31T12:00:00Z")
    assert (code, "use a time as in 2026-01-31T12:00:00Z" in said) == (2, True)
