"""The server of the status pages, as probes and scrapers speak to it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from libs.serving.small_server import LARGEST_HEAD, SmallServer


def told(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Says what it was asked."""
    if environ["PATH_INFO"] == "/fails":
        raise ValueError("nothing to say")
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Method", environ["REQUEST_METHOD"])])
    said = (environ["PATH_INFO"], environ["QUERY_STRING"], environ.get("HTTP_ACCEPT", ""))
    return [" ".join(said).encode(), b"\n"]


@contextmanager
def serving(*, silent_client_s: float = 60.0) -> Iterator[int]:
    server = SmallServer("127.0.0.1", 0, told, silent_client_s=silent_client_s)
    server.start()
    try:
        yield server.port
    finally:
        server.close()


def raw(port: int, sent: bytes) -> bytes:
    """What comes until the server has nothing more to say."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(sent)
        return b"".join(iter(lambda: client.recv(65536), b""))


async def test_it_answers_many_at_once() -> None:
    with serving() as port:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"accept": "text/plain"}) as client:
            answers = await asyncio.gather(*(client.get(f"/of%20{number}?x={number}&y") for number in range(20)))
            assert [answer.text for answer in answers] == [
                f"/of {number} x={number}&y text/plain\n" for number in range(20)
            ]
            head = await client.head("/page")
    assert (head.text, head.headers["x-method"], head.headers["content-length"]) == ("", "HEAD", "18")


def test_fields_that_come_twice_are_one() -> None:
    with serving() as port:
        answer = raw(port, b"GET / HTTP/1.1\r\nAccept: a\r\nhost: b\r\naccept:c\r\n\r\n")
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\n/  a,c\n")


@pytest.mark.parametrize("sent", [b"GET /\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"\x16\x03\x01 \r\n\r\n"])
def test_what_is_no_request_is_refused(sent: bytes) -> None:
    with serving() as port:
        assert raw(port, sent).startswith(b"HTTP/1.0 400 ")


def test_clients_that_send_nothing_or_too_much_are_left() -> None:
    with serving(silent_client_s=1.0) as port:
        assert raw(port, b"GET / HTTP/1.1\r\nx: ") == b""
    with serving() as port:
        assert raw(port, b"GET / HTTP/1.1\r\nx: ".ljust(LARGEST_HEAD + 1, b"x")) == b""


def test_an_application_that_fails_is_told_of() -> None:
    with serving() as port, capture_logs() as lines:
        assert raw(port, b"GET /fails HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.0 500 ")
        assert [(each["event"], each["path"]) for each in lines] == [("status.failed", "/fails")]
        assert b" 200 " in raw(port, b"GET / HTTP/1.1\r\n\r\n")


def test_a_client_for_which_no_thread_is_left_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    with serving() as port:
        monkeypatch.setattr(threading.Thread, "start", refused)
        assert raw(port, b"") == b""
        assert b" 200 " in raw(port, b"GET / HTTP/1.1\r\n\r\n")


def test_after_the_end_nobody_listens() -> None:
    with serving() as port:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
