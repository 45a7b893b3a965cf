"""A dump is restored by the program for its format, and no password is on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.determined_import.dump import restore_command, without_password
from deploy.determined_import.refusal import ImportRefused


@pytest.mark.parametrize(("content", "program"), [(b"PGDMP\x01", "pg_restore"), (b"--\n-- PostgreSQL", "psql")])
def test_the_content_tells_the_format(tmp_path: Path, content: bytes, program: str) -> None:
    dump = tmp_path / "dump"
    dump.write_bytes(content)
    command = restore_command(dump)
    assert (command[0], "--single-transaction" in command) == (program, True)


def test_a_dump_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="cannot be read"):
        restore_command(tmp_path / "dump")


def test_a_password_is_taken_out_of_an_address() -> None:
    assert without_password("postgresql://me:a%20b@host:5/db") == ("postgresql://me@host:5/db", "a b")
    assert without_password("postgresql://me@host/db") == ("postgresql://me@host/db", None)
