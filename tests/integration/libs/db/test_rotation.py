"""Passwords that change while a service runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from tests.harness import PostgresServer


@pytest.fixture
def guarded_server(server_directory: Path) -> Iterator[PostgresServer]:
    """A server that asks for a password."""
    server = PostgresServer(server_directory / f"pg-{uuid4().hex[:8]}", password="first", dies_with_parent=True)
    try:
        server.start()
        yield server
    finally:
        server.stop()


async def test_new_password_is_read_for_the_next_connection(guarded_server: PostgresServer, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    url = guarded_server.url("postgres").replace(":first@", "@")
    settings = DatabaseSettings(url=url, password_file=str(file), pool_size=2, connect_timeout_s=10)
    async with connect_database(settings) as db, db.read() as first:
        await first.execute(text("ALTER USER resolute PASSWORD 'second'"))
        file.write_text("second\n")
        async with db.read() as second:
            assert (await second.execute(text("SELECT 1"))).scalar_one() == 1
