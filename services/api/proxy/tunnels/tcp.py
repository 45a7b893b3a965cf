"""TCP over a websocket: binary messages are bytes of the connection, their borders mean nothing.

A websocket cannot be closed in one direction, and TCP can. So the end of what one side sends becomes a close, and the
other direction goes on for as long as something comes: a client that has said goodbye still gets the last words of
the server, and then the echo that it waits for (30 s, in the command line).

Source: docs/reference/tasks-and-cli.md 4.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Final

from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.streams import StreamReader

from services.api.proxy.tunnels.ends import ClientEnd, TunnelEnd

MAX_FRAME_BYTES: Final = 4 * 1024 * 1024
LAST_WORDS_S: Final = 10.0
"""How long one direction may be silent, once the other is closed."""


class WebSocketEnd(ClientEnd):
    """The client's end, which speaks websocket; the other one is a ``TcpEnd``."""

    def __init__(self, head: bytes, *, ping_interval_s: float) -> None:
        super().__init__(head)
        self._ping_interval_s = ping_interval_s
        self._stream = StreamReader()
        self._parser = self._parse()
        self._is_text = False
        self._has_closed = self._has_heard_close = False
        self._timer: asyncio.TimerHandle | None = None
        self._ping: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        next(self._parser)
        self._ping = asyncio.get_running_loop().call_later(self._ping_interval_s, self._send_ping)

    def data_received(self, data: bytes) -> None:
        self._stream.feed_data(data)
        try:
            next(self._parser)
        except PayloadTooBig as error:
            self._refuse(CloseCode.MESSAGE_TOO_BIG, str(error))
        except ProtocolError as error:
            self._refuse(CloseCode.PROTOCOL_ERROR, str(error))

    def write(self, data: bytes) -> None:
        if not self._has_closed:
            super().write(Frame(Opcode.BINARY, data).serialize(mask=False))
        if self._has_heard_close:
            self._wait_for_last_words()

    def end(self) -> None:
        """The task sends no more."""
        if self._is_lost:
            return
        self._send_close(CloseCode.NORMAL_CLOSURE)
        if self._has_heard_close:
            super().end()
        else:
            self._wait_for_last_words()

    def on_lost(self) -> None:
        for timer in (self._timer, self._ping):
            if timer is not None:
                timer.cancel()
        super().on_lost()

    def _parse(self) -> Generator[None, None, None]:
        while True:
            frame = yield from Frame.parse(self._stream.read_exact, mask=True, max_size=MAX_FRAME_BYTES)
            self._take(frame)

    def _take(self, frame: Frame) -> None:
        match frame.opcode:
            case Opcode.BINARY | Opcode.CONT if not self._is_text:
                self.other.write(bytes(frame.data))
                if self._has_closed:
                    self._wait_for_last_words()
            case Opcode.TEXT | Opcode.CONT:
                self._is_text = not frame.fin
            case Opcode.PING:
                self._send(Opcode.PONG, bytes(frame.data))
            case Opcode.CLOSE:
                self._hear_close()

    def _hear_close(self) -> None:
        self._has_heard_close = True
        if self._has_closed:
            super().end()
        else:
            self.other.end()
            self._wait_for_last_words()

    def _send_close(self, code: CloseCode, reason: str = "") -> None:
        if not self._has_closed:
            self._send(Opcode.CLOSE, Close(code, reason).serialize())
            self._has_closed = True

    def _refuse(self, code: CloseCode, reason: str) -> None:
        """Say what is wrong with what came, and end: what follows it cannot be understood."""
        self._send_close(code, reason[:100])
        self.pause_reading()
        super().end()

    def _send(self, opcode: Opcode, data: bytes) -> None:
        if not self._has_closed:
            super().write(Frame(opcode, data).serialize(mask=False))

    def _send_ping(self) -> None:
        self._send(Opcode.PING, b"")
        self._ping = asyncio.get_running_loop().call_later(self._ping_interval_s, self._send_ping)

    def _wait_for_last_words(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(LAST_WORDS_S, self._give_up)

    def _give_up(self) -> None:
        self._send_close(CloseCode.NORMAL_CLOSURE)
        super().end()


class TcpEnd(TunnelEnd):
    """The task's end."""

    other: WebSocketEnd
    _has_ended = False

    def eof_received(self) -> bool:
        """True keeps the other direction open."""
        self.other.end()
        return True

    def end(self) -> None:
        """The client sends no more; what the task still sends goes on to it."""
        if self._has_ended or self._is_lost or self.other._is_lost:
            super().end()
            return
        self._has_ended = True
        if self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()
