"""The websocket of one subscriber: messages come in one by one, and go out as fast as they are taken.

Neither direction holds more than a little: what nobody has read yet stops the reading, and whoever sends waits until
the last message has left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import SERVER, Protocol, State

from libs.serving.keep_alive import keep_alive

MAX_MESSAGE_BYTES: Final = 1024 * 1024
MOST_UNREAD: Final = 4
"""Messages that wait to be read; of what follows nothing is taken from the network."""
BUFFERED_BYTES: Final = 128 * 1024
CLOSE_S: Final = 10.0
"""How long the other side may take to say goodbye."""
LONGEST_REASON: Final = 120
"""Bytes of the reason for a close; a frame takes 123."""


class Gone(Exception):
    """The connection is closed, or the other side reads nothing."""


class WebSocket(asyncio.Protocol):
    """``head`` is the answer to the request; ``on_news`` is called when there is something to receive."""

    def __init__(self, head: bytes, *, on_news: Callable[[], None]) -> None:
        self._head = head
        self._on_news = on_news
        self._protocol = Protocol(SERVER, state=State.OPEN, max_size=MAX_MESSAGE_BYTES)
        self._part = bytearray()
        self._unread: deque[bytes] = deque()
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = asyncio.Event()
        self._transport: asyncio.Transport
        self.heard_at = 0.0
        """When the other side was last heard of, by the clock of the loop."""

    @property
    def is_gone(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._ended.is_set() or self._protocol.state is not State.OPEN

    def receive(self) -> bytes | None:
        """The next message, if there is one."""
        if not self._unread:
            return None
        message = self._unread.popleft()
        self._read_while_there_is_room()
        return message

    async def send(self, text: bytes, *, timeout_s: float) -> None:
        """Raises Gone, also when the message before is still not taken."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._writable.wait()
        except TimeoutError:
            self.cut()
            raise Gone("reads too slowly") from None
        if self.is_gone:
            raise Gone("closed")
        self._protocol.send_text(text)
        self._flush()

    def ping(self) -> None:
        if not self.is_gone:
            self._protocol.send_ping(b"")
            self._flush()

    def close(self, code: CloseCode, reason: str) -> None:
        """Say why it ends."""
        if not self.is_gone:
            self._protocol.send_close(code, reason.encode()[:LONGEST_REASON].decode(errors="ignore"))
            self._flush()

    async def ended(self) -> None:
        """Wait until it is closed; the other side has a moment to agree."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._ended.wait()
        except TimeoutError:
            self.cut()

    def cut(self) -> None:
        """End it at once."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        keep_alive(transport)
        self._transport.set_write_buffer_limits(high=BUFFERED_BYTES)
        self._transport.write(self._head)
        self.heard_at = asyncio.get_running_loop().time()

    def data_received(self, data: bytes) -> None:
        self.heard_at = asyncio.get_running_loop().time()
        self._protocol.receive_data(data)
        self._take_events()

    def eof_received(self) -> bool:
        self._protocol.receive_eof()
        self._take_events()
        return False

    def pause_writing(self) -> None:
        self._writable.clear()
        self._read_while_there_is_room()

    def resume_writing(self) -> None:
        self._writable.set()
        self._read_while_there_is_room()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended.set()
        self._writable.set()
        self._on_news()

    def _take_events(self) -> None:
        for frame in self._protocol.events_received():
            if not isinstance(frame, Frame):
                continue  # what opened the connection has been read before
            match frame.opcode:
                case Opcode.TEXT | Opcode.CONT:
                    self._part += frame.data
                    if frame.fin:
                        self._unread.append(bytes(self._part))
                        self._part.clear()
                case Opcode.BINARY:
                    self._protocol.fail(CloseCode.UNSUPPORTED_DATA, "messages are JSON, as text")
        self._flush()
        self._read_while_there_is_room()
        if self._unread or self.is_gone:
            self._on_news()

    def _read_while_there_is_room(self) -> None:
        """For messages, and for the answers to pings: whoever takes none of those could fill the memory with them."""
        if self._transport.is_closing():
            return
        if len(self._unread) < MOST_UNREAD and self._writable.is_set():
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if self._transport.is_closing():
                return
            if data:
                self._transport.write(data)
            elif self._transport.can_write_eof():
                self._transport.write_eof()
            else:
                self._transport.close()
        if self._protocol.close_expected() and self._protocol.state is State.CLOSED:
            self._transport.close()
