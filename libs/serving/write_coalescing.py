"""Coalesce writes, so that head and body of an answer leave in one packet.

The HTTP server writes them one after the other, which are two system calls here and two wake-ups at the client, and
for the short answers that training code gets that is most of what an answer costs. What is written is therefore held
until the event loop has come round, and goes out together.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

HELD_BYTES: Final = 64 * 1024
"""More is sent at once, so that the transport's own limits on what it buffers still hold."""


class CoalescingTransport(asyncio.Transport):
    """A transport that sends what is written during one round of the event loop together, in order."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._held_bytes = 0
        self.written_bytes = 0
        """Everything that was ever written."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(bytes(data))
        self._held_bytes += len(data)
        self.written_bytes += len(data)
        if self._held_bytes > HELD_BYTES:
            self._send()

    def bare(self) -> asyncio.Transport:
        """The transport below, once everything written so far is on its way."""
        self._send()
        return self._transport

    def close(self) -> None:
        """What was written before is still sent."""
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._held.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._held_bytes + self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def _send(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        if held and not self._transport.is_closing():
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))
