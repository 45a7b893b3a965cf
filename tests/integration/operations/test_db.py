"""``resolute db upgrade | current`` on a database that has nothing yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from deploy import cli
from deploy.local.servers.ports import free_port
from deploy.operations.db import OUTDATED
from libs.db import migrate
from libs.db.connecting.settings import asyncpg_url

VERSIONS = Path(migrate.__file__).parent / "migrations" / "versions"
NEWEST = max(path.stem.partition("_")[0] for path in VERSIONS.rglob("[0-9]*.py"))

Run = Callable[..., tuple[object, str]]

REFUSE_TO_UNMARK_SEVEN = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
CREATE TRIGGER refuse BEFORE DELETE ON metric_marks FOR EACH ROW WHEN (OLD.trial_id = 7) EXECUTE FUNCTION refuse();
"""


@pytest.fixture
def resolute(empty_database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("RESOLUTE_DATABASE__URL", empty_database_url)

    def run(*argv: str) -> tuple[object, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(argv)
        return ended.value.code, capsys.readouterr().out

    return run


def test_upgrade_says_from_where_to_where(resolute: Run) -> None:
    code, said = resolute("db", "current")
    assert (code, said) == (OUTDATED, f"the schema is missing; this release needs {NEWEST}: resolute db upgrade\n")
    assert resolute("db", "upgrade") == (0, f"the schema was missing, and is {NEWEST} now\n")
    for action in ("upgrade", "current"):
        assert resolute("db", action) == (0, f"the schema is {NEWEST}, as this release needs it\n")


def test_summaries_of_all_marked_trials_are_settled(resolute: Run, empty_database_url: str) -> None:
    resolute("db", "upgrade")

    async def mark(trial_id: int) -> None:
        connection = await asyncpg.connect(asyncpg_url(empty_database_url))
        await connection.execute("INSERT INTO metric_marks (trial_id) VALUES ($1)", trial_id)
        await connection.close()

    asyncio.run(mark(7))  # of a trial that is gone
    assert resolute("db", "settle-metrics") == (0, "summaries of 1 trials were written; all others were up to date\n")
    assert resolute("db", "settle-metrics") == (0, "summaries of 0 trials were written; all others were up to date\n")


def test_trial_that_cannot_be_settled_is_named_and_holds_up_no_other(resolute: Run, empty_database_url: str) -> None:
    resolute("db", "upgrade")

    async def mark() -> None:
        connection = await asyncpg.connect(asyncpg_url(empty_database_url))
        await connection.execute(REFUSE_TO_UNMARK_SEVEN)
        await connection.execute("INSERT INTO metric_marks (trial_id) VALUES (7), (8)")
        await connection.close()

    asyncio.run(mark())
    code, said = resolute("db", "settle-metrics")
    assert code == 1
    assert said.endswith("summaries of 1 trials were written, those of these were not: 7\n")


def test_database_of_this_machine_that_does_not_run_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("RESOLUTE_DATABASE__URL", raising=False)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "api.yaml").write_text(
        f"database: {{url: 'postgresql://resolute@127.0.0.1:{free_port()}/x'}}"
    )
    began = time.monotonic()
    with pytest.raises(SystemExit):
        cli.main(["--state", str(tmp_path), "db", "upgrade"])
    assert time.monotonic() - began < 30
    assert "start that of this machine with `resolute up --only-servers`" in capsys.readouterr().err
