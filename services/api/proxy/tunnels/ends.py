"""A tunnel: two connections whose bytes go from one to the other as they are.

What one side cannot take yet is not read from the other, so a tunnel holds little, however much goes through it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from libs.serving.keep_alive import keep_alive

FLUSH_S: Final = 30.0
"""How long what was sent before the end of one side may take to reach the other."""


class TunnelEnd(asyncio.Protocol):
    """One of the two connections. Bytes come in by ``data_received``, and go out by ``write``."""

    other: TunnelEnd
    transport: asyncio.Transport
    _is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.other.write(data)

    def write(self, data: bytes) -> None:
        """Send what has come in at the other end."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def pause_writing(self) -> None:
        self.other.pause_reading()

    def resume_writing(self) -> None:
        self.other.resume_reading()

    def pause_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self.other.end()
        self.on_lost()

    def on_lost(self) -> None:
        """Nothing comes in or goes out any more."""

    def end(self) -> None:
        """Send what is still to be sent, and close."""
        if self._is_lost:
            return
        self.transport.close()
        asyncio.get_running_loop().call_later(FLUSH_S, self.cut)

    def cut(self) -> None:
        """Close at once."""
        if not self._is_lost:
            self.transport.abort()


class ClientEnd(TunnelEnd):
    """The connection of the client, taken over from HTTP.

    head  the answer to its request
    """

    on_end: Callable[[], None]
    """Told when the connection is closed."""

    def __init__(self, head: bytes) -> None:
        self._head = head

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        keep_alive(transport)
        self.transport.write(self._head)

    def on_lost(self) -> None:
        self.on_end()

    def cut_both(self) -> None:
        """End the tunnel at once."""
        self.cut()
        self.other.cut()


def join(one: TunnelEnd, other: TunnelEnd) -> None:
    """Make a tunnel of two ends. Nothing may have come in at either of them."""
    one.other, other.other = other, one
