"""The socket of a service stays while the service is started anew, and goes when somebody else is to listen."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from deploy.local.supervision.kept_listener import KeptListener

VARIABLE = "DESCRIPTOR"


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        taken.close()
        yield number


def listener(port: int) -> KeptListener:
    return KeptListener({"host": "127.0.0.1", "port": port, "variable": VARIABLE})


def test_whoever_comes_waits_until_somebody_accepts(port: int) -> None:
    kept = listener(port)
    (descriptor,), variables = kept.handed_over()
    assert variables == {VARIABLE: str(descriptor)}
    with socket.create_connection(("127.0.0.1", port)):
        assert kept.handed_over() == ((descriptor,), variables)  # the next process gets the same
        with socket.socket(fileno=descriptor) as accepting:
            accepted, _ = accepting.accept()
            accepted.close()
            accepting.detach()
    kept.close()


def test_closed_it_leaves_the_address_to_others(port: int) -> None:
    kept = listener(port)
    kept.handed_over()
    kept.close()
    with socket.create_server(("127.0.0.1", port)):
        assert kept.handed_over() == ((), {})  # the service will say that it is taken


def test_a_service_without_one_opens_its_own() -> None:
    assert KeptListener(None).handed_over() == ((), {})
