"""Server streams: newline-delimited JSON, one ``{"result": …}`` per line, a chunk per batch, and never a blank line.

The client hands every line to a JSON parser, so there is no room for heartbeats; an error after the first line is the
last line. A stream may go on for days, so whoever reads it is asked for again who they are.
Source: docs/reference/platform.md 1.4, docs/reference/tasks-and-cli.md 1.4, docs/reference/logs.md 4.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog
from starlette.types import Send

from libs.errors import Unavailable
from libs.run_until_first_exits import run_until_first_exits
from services.api.http.connection import ClientGone
from services.api.http.database_errors import as_known_error
from services.api.http.errors import ErrorReply
from services.api.http.replies.reply import JSON_TYPE, Headers

_PREFIX: Final = b'{"result":'
_SUFFIX: Final = b"}\n"
# Keeps nginx from holding lines back.
_STREAM_HEADERS: Final = ((b"x-accel-buffering", b"no"), (b"cache-control", b"no-cache"))
LINES_TYPE: Final = "application/x-ndjson"
"""What streams are called for clients that ask for it; the reference calls them application/json."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StreamResult:
    """A stream of messages in batches; each batch is sent at once, so that followers see it at once.

    The generator is closed when the client goes away or an error ends the stream: clean up in ``finally``.
    """

    batches: AsyncIterator[Sequence[msgspec.Struct]]


def encode_batch(batch: Sequence[msgspec.Struct]) -> bytes:
    """The lines of a batch, keys of maps in order; empty for an empty batch."""
    encoder = msgspec.json.Encoder(order="deterministic")
    return b"".join(_PREFIX + encoder.encode(message) + _SUFFIX for message in batch)


def type_of_stream(accept: str) -> tuple[bytes, bytes]:
    """The header ``Content-Type`` of a stream for a request with this ``Accept``."""
    return (b"content-type", LINES_TYPE.encode()) if LINES_TYPE in accept.lower() else JSON_TYPE


async def send_stream(
    send: Send,
    result: StreamResult,
    *,
    headers: Headers,
    classify: Callable[[Exception], ErrorReply],
    until: Coroutine[Any, Any, None] | None = None,
) -> None:
    """Send a stream to its end.

    until  runs beside it; what it raises ends the stream like an error of its own
    Nothing is sent before the first line is there, so an error up to there is raised, to be answered with its own
    status; a later one is classified and becomes the last line.
    """
    started = False

    async def send_batches() -> None:
        nonlocal started
        async for batch in result.batches:
            lines = encode_batch(batch)
            if not lines:
                continue
            if not started:
                await _start(send, headers)
                started = True
            await send({"type": "http.response.body", "body": lines, "more_body": True})

    try:
        await (send_batches() if until is None else run_until_first_exits(batches=send_batches(), until=until))
    except ClientGone:
        raise
    except Exception as error:
        if not started:
            raise
        last_line = classify(error).stream_body()
        await send({"type": "http.response.body", "body": last_line})
        return
    finally:
        if isinstance(result.batches, AsyncGenerator):
            await result.batches.aclose()
    if not started:
        await _start(send, headers)
    await send({"type": "http.response.body", "body": b""})


async def until_refused(authenticate: Callable[[], Awaitable[object]], *, every_s: float) -> None:
    """Ask again and again who reads; raises what refuses them, as after a logout, and never returns.

    A database that is away refuses nobody.
    """
    while True:
        await asyncio.sleep(every_s)
        try:
            await authenticate()
        except Exception as error:
            if not isinstance(error, Unavailable) and not isinstance(as_known_error(error), Unavailable):
                raise
            log.info("http.not_authenticated_again", error=str(error).partition("\n")[0])


async def _start(send: Send, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [*_STREAM_HEADERS, *headers]})
