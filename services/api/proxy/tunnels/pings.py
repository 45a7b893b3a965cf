"""The client's end of a websocket to a server in a task, pinged while the server says nothing.

Many servers send no pings, and proxies in between end a connection that is silent for too long. The client's answer
goes to the server, which passes over a pong that it has not asked for (RFC 6455 5.5.3).
"""

from __future__ import annotations

import asyncio
from typing import Final

from websockets.frames import Frame, Opcode

from services.api.proxy.tunnels.ends import ClientEnd
from services.api.proxy.tunnels.frame_borders import FrameBorders

_PING: Final = Frame(Opcode.PING, b"").serialize(mask=False)


class PingedEnd(ClientEnd):
    """``early`` is what the server has sent behind its answer, which is ``head``."""

    def __init__(self, head: bytes, early: bytes, *, ping_interval_s: float) -> None:
        super().__init__(head + early)
        self._borders = FrameBorders()
        self._borders.feed(early)
        self._ping_interval_s = ping_interval_s
        self._was_silent = True
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._set_timer()

    def write(self, data: bytes) -> None:
        self._borders.feed(data)
        self._was_silent = False
        super().write(data)

    def on_lost(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().on_lost()

    def _ping_if_silent(self) -> None:
        if self._was_silent and self._borders.may_insert and not self.transport.is_closing():
            self.transport.write(_PING)
        self._was_silent = True
        self._set_timer()

    def _set_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._ping_interval_s, self._ping_if_silent)
