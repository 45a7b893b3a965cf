"""The handshake of a websocket with a server in a task: its answer decides whether there is a tunnel.

The request goes on as it came, so sub-protocols and extensions are between client and server. Only a server that
switches gets a tunnel; any other answer is a response like all others, or whatever follows it on the connection of the
client would go to the task unseen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import h11

from services.api.proxy.dial import NotReached
from services.api.proxy.headers import Headers
from services.api.proxy.tunnels.inbox import Inbox

ANSWER_TIMEOUT_S: Final = 60.0
MAX_HEAD_BYTES: Final = 128 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server has said to the request.

    early  what it sent behind its answer, when that is 101
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    early: bytes = b""


class Handshake:
    """One request for a websocket, on a connection of its own."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)

    async def request(self, target: bytes, headers: Headers) -> Answer:
        """Send the request, and wait for its answer. Raises NotReached when what comes is none."""
        wish = [(b"connection", b"upgrade"), (b"upgrade", b"websocket")]
        try:
            sent = self._http.send(h11.Request(method=b"GET", target=target, headers=[*headers, *wish]))
            self._inbox.transport.write((sent or b"") + (self._http.send(h11.EndOfMessage()) or b""))
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                answer = await self._next()
                while isinstance(answer, h11.InformationalResponse) and answer.status_code != 101:
                    answer = await self._next()
        except (h11.ProtocolError, TimeoutError) as error:
            raise NotReached(str(error) or "no answer in time") from error
        if not isinstance(answer, (h11.InformationalResponse, h11.Response)):
            raise NotReached("the connection was closed without an answer")
        return Answer(answer.status_code, answer.headers.raw_items(), self._early(answer))

    async def body(self) -> AsyncIterator[bytes]:
        """The rest of an answer other than 101. Raises NotReached when it is cut off."""
        try:
            while isinstance(event := await self._next(), h11.Data):
                yield bytes(event.data)
        except h11.ProtocolError as error:
            raise NotReached(str(error)) from error

    def _early(self, answer: h11.InformationalResponse | h11.Response) -> bytes:
        return bytes(self._http.trailing_data[0]) if isinstance(answer, h11.InformationalResponse) else b""

    async def _next(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._inbox.read())
        return event
