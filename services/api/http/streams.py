"""Server streams: newline-delimited JSON, one ``{"result": …}`` per line, a chunk per batch, and never a blank line.

The client hands every line to a JSON parser, so there is no room for heartbeats; an error after the first line is the
last line. Source: spec/platform.md 1.4, spec/tasks-and-cli.md 1.4, spec/logs.md 4.1.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.types import Send

from services.api.http.call import ClientGone
from services.api.http.errors import Failure
from services.api.http.replies import JSON_TYPE, Headers

_PREFIX: Final = b'{"result":'
_SUFFIX: Final = b"}\n"
# Keeps nginx from holding lines back.
_STREAM_HEADERS: Final = (JSON_TYPE, (b"x-accel-buffering", b"no"), (b"cache-control", b"no-cache"))


@dataclass(frozen=True, slots=True)
class StreamResult:
    """A stream of messages in batches; each batch is sent at once, so that followers see it at once.

    The generator is closed when the client goes away or an error ends the stream: clean up in ``finally``.
    """

    batches: AsyncIterator[Sequence[msgspec.Struct]]


def encode_batch(batch: Sequence[msgspec.Struct]) -> bytes:
    """The lines of a batch; empty for an empty batch."""
    encoder = msgspec.json.Encoder()
    return b"".join(_PREFIX + encoder.encode(message) + _SUFFIX for message in batch)


async def send_stream(
    send: Send, result: StreamResult, *, headers: Headers, classify: Callable[[Exception], Failure]
) -> None:
    """Send a stream to its end.

    Nothing is sent before the first line is there, so an error up to there is raised, to be answered with its own
    status; a later one is classified and becomes the last line.
    """
    started = False
    try:
        async for batch in result.batches:
            lines = encode_batch(batch)
            if not lines:
                continue
            if not started:
                await _start(send, headers)
                started = True
            await send({"type": "http.response.body", "body": lines, "more_body": True})
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


async def _start(send: Send, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [*_STREAM_HEADERS, *headers]})
