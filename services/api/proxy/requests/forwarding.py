"""HTTP to a task and back: bodies go through as they come, both ways, and nothing is kept of them.

A response that is cut off is cut off for the client too, which otherwise would take the part for the whole.

Source: docs/reference/tasks-and-cli.md 4.2.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from services.api.http.connection import ClientGone, until_gone
from services.api.http.exchange import Exchange
from services.api.proxy.dial import NotReached
from services.api.proxy.headers import Finish, to_client, to_task
from services.api.proxy.requests.connection import TaskConnection
from services.api.proxy.requests.pool import ConnectionPool
from services.api.proxy.targets import Target

LOOK_AFTER_S: Final = 0.05
"""When somebody begins to look whether the client of a request without a body is still there: most have their response
by then, and looking costs as much as much else of a request."""
_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Forwarding:
    """Sends requests to tasks. To be entered before the first."""

    def __init__(self, *, dial_timeout_s: float) -> None:
        self._pool = ConnectionPool(dial_timeout_s=dial_timeout_s)
        self._looks = _Looks()

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *_: object) -> None:
        self._looks.stop()
        self._pool.close()

    async def forward(self, exchange: Exchange, target: Target, *, finish: Finish) -> None:
        """Send a request to a task, and its response to the client.

        finish  what the client gets of the headers of the response
        Raises NotReached when the task gives no response, and ClientGone.
        """
        request = _Request(exchange, target)
        connection = await self._pool.take(target)
        if await self._attempt(request, connection, finish):
            return
        # The task has closed an old connection just when it was used.
        await self._attempt(request, await self._pool.take(target, new=True), finish)

    async def _attempt(self, request: _Request, connection: TaskConnection, finish: Finish) -> bool:
        """False where the request may be sent again, on another connection."""
        is_old = connection.was_used
        connection.was_used = True
        client = _Client(request, connection, self._looks)
        try:
            connection.ask(request.head, is_head=request.method == "HEAD")
            client.follow()
            await _send_response(request.exchange, connection, finish)
        except NotReached:
            if is_old and not connection.has_answered and request.is_repeatable:
                return False
            raise
        finally:
            client.leave()
            self._pool.give_back(request.target, connection)
        return True


class _Request:
    """A request, as the task gets it."""

    __slots__ = ("exchange", "has_body", "head", "is_chunked", "is_repeatable", "method", "target")

    def __init__(self, exchange: Exchange, target: Target) -> None:
        scope = exchange.scope
        self.exchange = exchange
        self.target = target
        self.method: str = scope["method"]
        self.is_chunked = "transfer-encoding" in exchange.headers
        self.has_body = self.is_chunked or exchange.headers.get("content-length", "0") != "0"
        self.is_repeatable = not self.has_body and self.method in _REPEATABLE
        self.head = self._head()

    def _head(self) -> bytes:
        """As the client has spelt it: what a path means is for the server in the task to say."""
        scope = self.exchange.scope
        client = scope.get("client")
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        lines = [b"%b %b%b HTTP/1.1\r\n" % (self.method.encode(), scope["raw_path"], query)]
        if "host" not in self.exchange.headers:
            lines.append(b"host: %b\r\n" % self.target.authority.encode())
        headers = to_task(scope["headers"], client=client[0] if client else "", scheme=scope["scheme"])
        lines += [b"%b: %b\r\n" % header for header in headers]
        lines.append(b"transfer-encoding: chunked\r\n\r\n" if self.is_chunked else b"\r\n")
        return b"".join(lines)


class _Looks:
    """Begins to look for clients a while after they have asked: once for all that have by then, because a timer of its
    own costs a request more than looking up who sends it. So it may take twice as long."""

    def __init__(self) -> None:
        self._due: deque[tuple[float, _Client]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, client: _Client) -> None:
        loop = asyncio.get_running_loop()
        self._due.append((loop.time() + LOOK_AFTER_S, client))
        if self._timer is None:
            self._timer = loop.call_later(LOOK_AFTER_S, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._due and self._due[0][0] <= now:
            self._due.popleft()[1].look()
        self._timer = loop.call_later(LOOK_AFTER_S, self._look) if self._due else None


class _Client:
    """The client while it is served: what it still sends, and whether it is there at all."""

    __slots__ = ("_connection", "_has_left", "_looks", "_owes_body", "_request", "_task")

    def __init__(self, request: _Request, connection: TaskConnection, looks: _Looks) -> None:
        self._request = request
        self._connection = connection
        self._looks = looks
        self._task: asyncio.Task[None] | None = None
        self._owes_body = request.has_body
        self._has_left = False

    def follow(self) -> None:
        """Send its body, and close the connection when it has gone."""
        if self._owes_body:
            self.look()
        else:
            self._looks.add(self)

    def look(self) -> None:
        """Do so from now on, unless it has its response."""
        if not self._has_left:
            self._task = asyncio.create_task(self._follow())

    def leave(self) -> None:
        """Do so no more; a task whose client still owes it a part of the body gets no other request."""
        self._has_left = True
        if self._task is not None:
            self._task.cancel()
        if self._owes_body or not self._connection.is_read:
            self._connection.close()

    async def _follow(self) -> None:
        if not self._owes_body or await self._send_body():
            await until_gone(self._request.exchange.receive)
        self._connection.stop(ClientGone())

    async def _send_body(self) -> bool:
        """False when the client has gone in the middle of it."""
        more = True
        while more:
            message = await self._request.exchange.receive()
            if message["type"] == "http.disconnect":
                return False
            more = message.get("more_body", False)
            piece = message.get("body", b"")
            if self._request.is_chunked:
                piece = (b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"") + (b"" if more else b"0\r\n\r\n")
            if piece:
                await self._connection.write(piece)
        self._owes_body = False
        return True


async def _send_response(exchange: Exchange, connection: TaskConnection, finish: Finish) -> None:
    status, headers = await connection.response()
    told = exchange.with_defaults(finish(to_client(headers, status=status)))
    await exchange.send({"type": "http.response.start", "status": status, "headers": told})
    more = True
    while more:
        piece = await connection.read()
        more = not connection.is_read
        await exchange.send({"type": "http.response.body", "body": piece, "more_body": more})
