"""Responses of servers in tasks, however they are cut into pieces: what they say, and whether one may ask again."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.api.proxy.dial import NotReached
from services.api.proxy.requests.connection import MAX_HEAD_BYTES, TaskConnection

Result = TypeVar("Result")

OK = b"HTTP/1.1 200 OK\r\n"


class Wire(asyncio.Transport):
    """What is below, which notes what reaches it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_aborted = self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_aborted

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def at_once(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of what has nothing to wait for: there is no event loop."""
    try:
        work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    raise AssertionError("it waits")


def asked(*, is_head: bool = False) -> tuple[TaskConnection, Wire]:
    connection, wire = TaskConnection(), Wire()
    connection.connection_made(wire)
    connection.ask(b"request", is_head=is_head)
    assert wire.written == b"request"
    return connection, wire


def answer(pieces: Sequence[bytes], *, is_head: bool = False, ends: bool = False) -> tuple[int, bytes, bool] | str:
    """Status, body, and whether the connection can be used again; or ``cut`` behind a head, ``none`` without one."""
    connection, _ = asked(is_head=is_head)
    for piece in pieces:
        connection.data_received(piece)
    if ends:
        connection.connection_lost(None)

    async def read() -> tuple[int, bytes, bool] | str:
        try:
            status, _ = await connection.response()
        except NotReached:
            return "none"
        body = b""
        try:
            while piece := await connection.read():
                body += piece
        except NotReached:
            return "cut"
        return status, body, connection.can_be_reused

    return at_once(read())


COMPLETE = {
    "a length": (OK + b"Content-Length: 5\r\n\r\nhello", (200, b"hello", True)),
    "nothing": (OK + b"Content-Length: 0\r\n\r\n", (200, b"", True)),
    "chunks": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: 1\r\n\r\n",
        (200, b"hello", True),
    ),
    "continue first": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx", (200, b"x", True)),
    "hints first": (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx", (200, b"x", True)),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"", True)),
    "the last one": (OK + b"Connection: close\r\nContent-Length: 1\r\n\r\nx", (200, b"x", False)),
    "of old": (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", (200, b"x", False)),
    "of old, kept": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", (200, b"x", True)),
    "bare newlines": (b"HTTP/1.1 200 OK\nContent-Length: 1\n\nx", (200, b"x", True)),
    "an error": (b"HTTP/1.1 500 Oh\r\nContent-Length: 1\r\n\r\nx", (500, b"x", True)),
}


@pytest.mark.parametrize("case", COMPLETE)
@given(cuts=st.lists(st.integers(0, 120), max_size=4))
def test_a_response_in_any_pieces(case: str, cuts: list[int]) -> None:
    sent, expected = COMPLETE[case]
    ends = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    pieces = [sent[start:end] for start, end in pairwise(ends) if end > start]
    assert answer(pieces) == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (OK + b"\r\nto the end", (200, b"to the end", False)),
        (OK + b"Transfer-Encoding: gzip\r\n\r\nto the end", (200, b"to the end", False)),
        (OK + b"Content-Length: 5\r\n\r\nhel", "cut"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", "cut"),
        (OK + b"Content-Le", "none"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "none"),
        (b"", "none"),
    ],
)
def test_a_response_at_the_end_of_its_connection(sent: bytes, expected: object) -> None:
    assert answer([sent] if sent else [], ends=True) == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (OK + b"Content-Length: 5\r\n\r\n", (200, b"", False)),
        (OK + b"\r\n", (200, b"", False)),
        (OK + b"Content-Length: 0\r\n\r\n", (200, b"", True)),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", (304, b"", True)),
    ],
)
def test_a_response_to_head(sent: bytes, expected: object) -> None:
    assert answer([sent], is_head=True) == expected


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        OK + b"X: \x01\r\n\r\n",
        OK + b"Content-Length: ten\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"X: " + b"x" * (MAX_HEAD_BYTES + 1),
        b"HTTP/1.1 100 Continue\r\n\r\n" * (MAX_HEAD_BYTES // 20),
    ],
    ids=range(9),
)
def test_what_is_no_response(sent: bytes) -> None:
    assert answer([sent]) == "none"


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny", b"garbage"])
@pytest.mark.parametrize("at_once", [True, False])
def test_what_follows_a_response_unasked_ends_the_connection(more: bytes, at_once: bool) -> None:
    sent = OK + b"Content-Length: 1\r\n\r\nx"
    found = answer([sent + more] if at_once else [sent, more])
    assert found == (200, b"x", False)


def test_trailers_without_end_end_a_response() -> None:
    sent = OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    assert answer([sent, *[b"T: " + b"x" * 10_000 + b"\r\n"] * 20]) == "cut"


def test_what_nobody_reads_is_not_read_from_the_task() -> None:
    connection, wire = asked()
    connection.data_received(OK + b"Content-Length: 1000000\r\n\r\n" + b"x" * 300_000)
    assert wire.is_paused
    assert len(at_once(connection.read())) == 300_000
    assert not wire.is_paused


def test_one_request_after_the_other() -> None:
    connection, _ = asked()
    for number in range(3):
        connection.data_received(OK + b"X: %d\r\nContent-Length: 1\r\n\r\n%d" % (number, number))
        status, headers = at_once(connection.response())
        assert (status, headers[0], at_once(connection.read())) == (200, (b"x", b"%d" % number), b"%d" % number)
        assert connection.can_be_reused
        connection.ask(b"another", is_head=False)
    connection.connection_lost(None)
    with pytest.raises(NotReached):
        at_once(connection.response())
    assert not connection.has_answered
