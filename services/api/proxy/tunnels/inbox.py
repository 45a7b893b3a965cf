"""A connection to a task before it is clear what becomes of it: what comes in is kept until somebody wants it."""

from __future__ import annotations

import asyncio
from typing import Final, cast

_HELD_BYTES: Final = 256 * 1024


class Inbox(asyncio.Protocol):
    """Is read by whoever wants to, until the connection is handed over to another protocol."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._held = bytearray()
        self._has_ended = self._is_lost = False
        self._news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._held += data
        self._news.set()
        if len(self._held) > _HELD_BYTES:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        """True keeps our side open: what becomes of it is for others to say."""
        self._has_ended = True
        self._news.set()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self._has_ended = self._is_lost = True
        self._news.set()

    async def read(self) -> bytes:
        """All that has come since the last time; waits for something, and empty at the end."""
        if not self._held and not self._has_ended:
            self._news.clear()
            await self._news.wait()
        data = bytes(self._held)
        self._held.clear()
        self._resume()
        return data

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Let ``protocol``, which knows the transport, have what has come unread and what comes from now on."""
        self.transport.set_protocol(protocol)
        if self._held:
            protocol.data_received(bytes(self._held))
            self._resume()
        if self._is_lost:
            protocol.connection_lost(None)
        elif self._has_ended and not protocol.eof_received():
            self.transport.close()

    def _resume(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()
