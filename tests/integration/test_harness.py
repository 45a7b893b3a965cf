"""The servers that the other integration tests trust."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import pytest

from deploy.local.servers.ports import LISTENING
from tests.harness import NatsServer, PostgresServer


async def _query(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_database_is_migrated(database_url: str) -> None:
    assert await _query(database_url, "SELECT count(*) FROM alembic_version") == 1


async def test_committed_rows_survive_kill_of_postgres(postgres_server: PostgresServer, database_url: str) -> None:
    await _query(database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
    busy = await asyncpg.connect(database_url.replace("+asyncpg", ""))  # its process outlives the postmaster a little
    postgres_server.restart()
    busy.terminate()
    assert await _query(database_url, "SELECT answer FROM kept") == 42


@contextmanager
def taken_for_a_second(port: int) -> Iterator[None]:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        timer = threading.Timer(1.0, other.close)
        timer.start()
        try:
            yield
        finally:
            timer.join()


def test_nats_comes_back_when_somebody_else_had_its_port_for_a_moment(own_nats_server: NatsServer) -> None:
    port = own_nats_server.port
    assert port in LISTENING
    own_nats_server.kill()
    with taken_for_a_second(port):
        own_nats_server.start()
    assert own_nats_server.is_running
    assert own_nats_server.port == port


def test_postgres_comes_back_when_somebody_else_had_its_port_for_a_moment(postgres_server: PostgresServer) -> None:
    if not isinstance(postgres_server, PostgresServer):
        pytest.skip("the port of a container is Docker's to keep")
    port = postgres_server.port
    assert port in LISTENING
    postgres_server.kill()
    with taken_for_a_second(port):
        postgres_server.start()
    assert postgres_server.is_running
    assert postgres_server.port == port
