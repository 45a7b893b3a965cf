"""Server streams: newline-delimited JSON, one ``{"result": …}`` per line, a chunk per batch.

An error after the first line is the last line. A stream may go on for days, so whoever reads it is asked for again who
they are, and while there is nothing to say, something is sent that no reader sees (``silence.py``).
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
from libs.run_until_first_exits import end
from services.api.http.connection import ClientGone
from services.api.http.database_errors import as_known_error
from services.api.http.errors import ErrorReply
from services.api.http.replies.reply import JSON_TYPE, Headers
from services.api.http.replies.silence import LINES_TYPE, StreamCoding

SHORT_S: Final = 0.1
"""Most streams have ended by then; whatever goes on beside a stream begins only with those that have not."""
_PREFIX: Final = b'{"result":'
_SUFFIX: Final = b"}\n"
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
# Keeps nginx from holding lines back.
_STREAM_HEADERS: Final = ((b"x-accel-buffering", b"no"), (b"cache-control", b"no-cache"))

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StreamResult:
    """A stream of messages in batches; each batch is sent at once, so that followers see it at once.

    The generator is closed when the client goes away or an error ends the stream: clean up in ``finally``.
    """

    batches: AsyncIterator[Sequence[msgspec.Struct]]


def encode_batch(batch: Sequence[msgspec.Struct]) -> bytes:
    """The lines of a batch, keys of maps in order; empty for an empty batch."""
    return b"".join([_PREFIX + _ENCODER.encode(message) + _SUFFIX for message in batch])


def type_of_stream(accept: str) -> tuple[bytes, bytes]:
    """The header ``Content-Type`` of a stream for a request with this ``Accept``."""
    return (b"content-type", LINES_TYPE.encode()) if LINES_TYPE in accept.lower() else JSON_TYPE


class _Response:
    """The response of one stream; nothing is sent before there is something to send."""

    def __init__(self, send: Send, headers: Headers, coding: StreamCoding) -> None:
        self._send = send
        self._headers = headers
        self._coding = coding
        self._turn = asyncio.Lock()
        self._sent_at = asyncio.get_running_loop().time()
        self._unsent = b""
        self.has_started = False

    async def send(self, lines: bytes) -> None:
        async with self._turn:
            await self._send_body(self._coding.encode(lines))

    async def end(self, lines: bytes = b"") -> None:
        async with self._turn:
            await self._send_body((self._coding.encode(lines) if lines else b"") + self._coding.end(), more=False)

    async def stay_open(self, interval_s: float) -> None:
        """Send something that means nothing whenever nothing was sent for ``interval_s``; never returns."""
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._sent_at + interval_s - clock())
            async with self._turn:
                if clock() < self._sent_at + interval_s:
                    continue
                nothing = self._coding.silence()
                if nothing:
                    await self._send_body(nothing)
                self._sent_at = clock()

    async def _send_body(self, body: bytes, *, more: bool = True) -> None:
        self._unsent += (
            body  # who is cancelled while the client takes nothing has sent nothing, and what follows needs it
        )
        if not self.has_started:
            headers = [*_STREAM_HEADERS, *self._coding.headers, *self._headers]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            self.has_started = True
        await self._send({"type": "http.response.body", "body": self._unsent, "more_body": more})
        self._unsent = b""
        self._sent_at = asyncio.get_running_loop().time()


async def send_stream(
    send: Send,
    result: StreamResult,
    *,
    headers: Headers,
    coding: StreamCoding,
    classify: Callable[[Exception], ErrorReply],
    silence_s: float,
    beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
) -> None:
    """Send a stream to its end.

    silence_s  how long nothing is sent before something is that means nothing
    beside     run beside it, once it has taken ``SHORT_S``; what they raise ends the stream like an error of its own
    Nothing is sent before the first line is there, or ``silence_s`` are over, so an error up to there is raised, to be
    answered with its own status; a later one is classified and becomes the last line.
    """
    response = _Response(send, headers, coding)

    async def send_batches() -> None:
        async for batch in result.batches:
            lines = encode_batch(batch)
            if lines:
                await response.send(lines)

    try:
        await _run_with(send_batches(), lambda: response.stay_open(silence_s), *beside)
    except ClientGone:
        raise
    except Exception as error:
        if not response.has_started:
            raise
        await response.end(classify(error).stream_body())
        return
    finally:
        if isinstance(result.batches, AsyncGenerator):
            await result.batches.aclose()
    await response.end()


async def _run_with(work: Coroutine[Any, Any, None], *beside: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run ``work`` to its end and, if that takes long, what goes on beside it, until the first of these has ended.

    Raises what the first that failed has raised.
    """
    tasks = [asyncio.create_task(work)]
    try:
        await asyncio.wait(tasks, timeout=SHORT_S)
        if not tasks[0].done():
            tasks += [asyncio.create_task(begin()) for begin in beside]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended = [task for task in tasks if task.done()]
        await end(*tasks)
    for task in (*ended, *tasks):
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


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
