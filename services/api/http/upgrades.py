"""Requests that ask for a websocket: the head of the answer, and the result of a handler that takes the connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from websockets.utils import accept_key


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What a handler returns instead of an answer; ``start`` takes the connection over, and raises ConnectionError when
    the client has left."""

    start: Callable[[], None]


def accepted(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The head of the answer that opens a websocket; None for a request that is none as RFC 6455 4.2.1 has it."""
    found = dict(headers)
    key = found.get(b"sec-websocket-key", b"").strip()
    if not key or found.get(b"sec-websocket-version", b"").strip() != b"13":
        return None
    proof = accept_key(key.decode("latin-1")).encode()
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-accept: " + proof + b"\r\n\r\n"
    )
