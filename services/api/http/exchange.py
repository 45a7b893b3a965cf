"""One request and the answer to it, between the ASGI server and the routes."""

from __future__ import annotations

import itertools
import os
from http import HTTPStatus
from typing import Final

from starlette.responses import Response
from starlette.types import Message as AsgiMessage
from starlette.types import Receive, Scope, Send

from services.api.http.connection import ClientGone, while_connected
from services.api.http.errors import ErrorReply
from services.api.http.replies.reply import (
    EMPTY_MESSAGE,
    JSON_TYPE,
    SECURITY_HEADERS,
    Headers,
    RawResponse,
    Reply,
    as_headers,
    encode_message,
    send_bytes,
    send_json,
    send_raw,
)
from services.api.http.routing import HandlerResult
from services.api.http.upgrades import Upgrade

_MAX_REQUEST_ID: Final = 64
# Together a new id for every request of every replica, without asking for randomness each time.
_PROCESS: Final = os.urandom(12).hex()
_COUNT: Final = itertools.count(1)


class Exchange:
    """One request and the answer to it; remembers the status once it is sent."""

    __slots__ = ("_send", "headers", "receive", "request_id", "scope", "security_headers", "status")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.request_id = _request_id(self.headers)
        self.status = 0
        self.security_headers: Headers = list(SECURITY_HEADERS)
        self._send = send

    async def send(self, message: AsgiMessage) -> None:
        """Raises ClientGone when nobody is there to receive the message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        try:
            await self._send(message)
        except OSError as error:
            raise ClientGone from error

    async def send_with_defaults(self, message: AsgiMessage) -> None:
        """Like ``send``, for answers that do not know ``reply_headers``: adds those that are missing."""
        if message["type"] == "http.response.start":
            own = [(name.lower(), value) for name, value in message.get("headers", ())]
            message = {**message, "headers": self.with_defaults(own)}
        await self.send(message)

    def with_defaults(self, headers: Headers) -> Headers:
        """``headers``, whose names are in lower case, and those of ``reply_headers`` that are missing."""
        names = {name for name, _ in headers}
        return [*headers, *[header for header in self.reply_headers() if header[0] not in names]]

    def reply_headers(self) -> Headers:
        """What every answer carries."""
        return [*self.security_headers, (b"x-request-id", self.request_id.encode("latin-1"))]


async def send_result(exchange: Exchange, result: HandlerResult) -> None:
    headers = exchange.reply_headers()
    match result:
        case None:
            await _send_message(exchange, result, headers)
        case RawResponse():
            sending = send_raw(exchange.send, result, headers=headers)
            await (sending if isinstance(result.content, bytes) else while_connected(exchange.receive, sending))
        case Upgrade():
            try:
                result.start()
            except ConnectionError as error:
                raise ClientGone from error
            exchange.status = HTTPStatus.SWITCHING_PROTOCOLS
        case Response():
            await result(exchange.scope, exchange.receive, exchange.send_with_defaults)
        case Reply(message=message, headers=own):
            await _send_message(exchange, message, [*as_headers(own), *headers])
        case _:
            await _send_message(exchange, result, headers)


async def _send_message(exchange: Exchange, message: object, headers: Headers) -> None:
    pretty = b"pretty" in exchange.scope["query_string"]
    if message is None and not pretty:
        await send_bytes(exchange.send, EMPTY_MESSAGE, status=200, headers=[JSON_TYPE, *headers])
        return
    await send_json(
        exchange.send,
        encode_message(message, pretty=pretty),
        accept_encoding=exchange.headers.get("accept-encoding", ""),
        headers=headers,
    )


async def send_error(exchange: Exchange, failure: ErrorReply, *, stream: bool, raw: bool) -> None:
    body = failure.stream_body() if stream else failure.plain_body() if raw else failure.api_body()
    headers: Headers = [JSON_TYPE, *exchange.reply_headers(), *failure.headers]
    await send_bytes(exchange.send, body, status=failure.status, headers=headers)


def _request_id(headers: dict[str, str]) -> str:
    """The id a proxy in front gave the request, if it is a decent one, or a new one."""
    given = headers.get("x-request-id", "")
    if 0 < len(given) <= _MAX_REQUEST_ID and given.isascii() and given.replace("-", "").isalnum():
        return given
    return f"{_PROCESS}{next(_COUNT):08x}"
