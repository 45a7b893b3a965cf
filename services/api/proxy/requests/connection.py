"""One HTTP/1.1 connection to a server in a task: a request after the other, and the response to each.

The parser is that of the HTTP server of the api. What the client does not take is not read from the task, so a
connection holds little, however long a body is.
Source: RFC 9112 6.3 (where a body ends), 9.3 (what may be used again).
"""

from __future__ import annotations

import asyncio
import re
from typing import Final, cast

import httptools

from services.api.proxy.dial import NotReached
from services.api.proxy.headers import Headers

MAX_HEAD_BYTES: Final = 128 * 1024
"""Of all that comes without being a part of a body: heads, trailers, extensions of chunks."""
_HELD_BYTES: Final = 256 * 1024
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_WITHOUT_BODY: Final = frozenset({204, 304})


class TaskConnection(asyncio.Protocol):
    """Sends requests, and gives their responses out in pieces."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        # As clients in general: servers of users are not always exact, and every response is written anew.
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)
        self._waiting: asyncio.Future[None] | None = None
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._is_lost = False
        self.was_used = self.has_answered = False
        """Whether there was a request before this one, and whether anything of a response has come."""
        self._begin(is_head=False)
        self._is_complete = True

    def _begin(self, *, is_head: bool) -> None:
        self._is_head = is_head
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._held_bytes = self._untold_bytes = 0
        self._is_paused = self._has_head = self._is_complete = self._is_last = False
        self._ends_with_connection = False
        self._is_parsed = False
        """Whether the parser is at the end of the response too; of one to HEAD it does not know where that is."""
        self._error: Exception | None = None

    # Requests
    def ask(self, head: bytes, *, is_head: bool) -> None:
        """Send the head of a request; ``is_head`` says that its method is HEAD. To be called for one at a time."""
        self._begin(is_head=is_head)
        self.has_answered = False
        if self.transport.is_closing():
            self._fail(NotReached("the connection was closed"))
        else:
            self.transport.write(head)

    @property
    def can_be_reused(self) -> bool:
        """Whether the next request may be sent, once the body of the last one has been."""
        return self._is_parsed and not self._is_last and not self._is_lost and not self.transport.is_closing()

    async def write(self, data: bytes) -> None:
        """Send a piece of its body, when there is room for it."""
        if not self.transport.is_closing():
            self.transport.write(data)
            await self._can_write.wait()

    # Responses
    async def response(self) -> tuple[int, Headers]:
        """Status and headers. Raises NotReached when what comes is no response."""
        while not self._has_head:
            await self._news()
        return self._status, self._headers

    async def read(self) -> bytes:
        """More of the body; empty when it is complete. Raises NotReached when it is cut off."""
        while not self._pieces:
            if self._is_complete:
                return b""
            await self._news()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._held_bytes = 0
        if self._is_paused:
            self._is_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()
        return data

    @property
    def is_read(self) -> bool:
        """Whether the response has been read to its end."""
        return self._is_complete and not self._pieces

    def stop(self, error: Exception) -> None:
        """Close at once; whoever reads gets ``error``."""
        self._fail(error)

    def close(self) -> None:
        self._is_last = True
        if not self._is_lost:
            self.transport.abort()

    # What the event loop tells
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._is_complete:
            self.close()  # nobody has asked for it
            return
        self.has_answered = True
        self._untold_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(NotReached("it switches protocols, which nobody has asked for"))
        except httptools.HttpParserError as error:
            self._fail(NotReached(str(error)))
        if self._untold_bytes > MAX_HEAD_BYTES and not self._is_complete:
            self._fail(NotReached("the head of the response is too long"))
        if self._held_bytes > _HELD_BYTES and not self.transport.is_closing():
            self._is_paused = True
            self.transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self._can_write.set()
        if self._ends_with_connection and error is None:
            self._is_complete = True
        else:
            self._fail(NotReached("the connection was closed before the response was complete"))
        self._wake()

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    # What the parser tells
    def on_message_begin(self) -> None:
        if self._is_complete:
            self._is_last = True  # what comes now is no response to anything

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._has_head:
            return
        status = self._parser.get_status_code()
        if status < 200:
            self._headers = []
            return
        if status > 599 or _CONTROLS.search(b"".join([value for _, value in self._headers])):
            self._fail(NotReached("the head of the response is malformed"))
            return
        self._status = status
        self._has_head = True
        self._untold_bytes = 0
        if self._is_head or status in _WITHOUT_BODY:
            self._is_complete = True
        else:
            self._ends_with_connection = _ends_with_connection(self._headers)

    def on_body(self, body: bytes) -> None:
        self._untold_bytes = 0
        if not self._is_complete:
            self._pieces.append(body)
            self._held_bytes += len(body)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_complete = self._is_parsed = True
            self._is_last = self._is_last or not self._parser.should_keep_alive()

    # Waiting
    async def _news(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _fail(self, error: Exception) -> None:
        if not self._is_complete and self._error is None:
            self._error = error
        self.close()
        self._wake()


def _ends_with_connection(headers: Headers) -> bool:
    """Whether nothing else says where the body ends."""
    found = dict(headers)
    codings = found.get(b"transfer-encoding")
    if codings is not None:
        return not codings.lower().rstrip().endswith(b"chunked")
    return b"content-length" not in found
