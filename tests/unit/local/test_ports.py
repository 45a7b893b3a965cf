from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import pytest

from deploy.local.servers.ports import LISTENING, free_port

MANY = 150
"""From as many of LISTENING, two of four askers who draw alone get the same one in all but one of a million times."""


def several(_: int) -> list[int]:
    return [free_port() for _ in range(MANY)]


@contextmanager
def listening(port: int) -> Iterator[None]:
    with socket.create_server(("127.0.0.1", port)):
        yield


def test_nobody_gets_the_port_of_another_who_has_yet_to_listen() -> None:
    with ProcessPoolExecutor(4) as processes:
        ports = [port for each in processes.map(several, range(4)) for port in each]
    assert len(set(ports)) == len(ports) == 4 * MANY
    assert set(ports) <= set(LISTENING)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_server_can_listen_where_it_was_told_to(host: str) -> None:
    with socket.create_server((host, free_port(host))):
        pass


def test_the_preferred_one_is_taken_when_nobody_listens_there() -> None:
    port = free_port()
    assert free_port(preferred=port) == port
    with listening(port):
        assert free_port(preferred=port) not in {port, 0}


def test_what_is_to_be_avoided_is_not_taken() -> None:
    spared = set(LISTENING[:200])
    assert free_port(avoid=set(LISTENING) - spared) in spared
