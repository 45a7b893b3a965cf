"""What goes on beside a stream begins only with one that takes long, and then ends it as before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import pytest
from msgspec import Struct

from services.api.http.connection import ClientGone, raise_when_gone
from services.api.http.errors import ErrorReply, classify
from services.api.http.replies.silence import PlainCoding
from services.api.http.replies.streams import StreamResult, send_stream
from services.api.wire.base import Empty

LINE = b'{"result":{}}\n'


async def test_nothing_is_begun_beside_a_short_stream() -> None:
    begun: list[str] = []

    async def beside() -> None:
        begun.append("beside")

    async def batches() -> AsyncIterator[Sequence[Struct]]:
        yield [Empty()]
        await asyncio.sleep(0)
        yield [Empty()]

    assert await _sent(batches(), beside) == [LINE, LINE, b""]
    assert begun == []


async def test_a_long_stream_ends_when_its_client_leaves() -> None:
    closed = asyncio.Event()

    async def batches() -> AsyncIterator[Sequence[Struct]]:
        try:
            yield [Empty()]
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def leave() -> Any:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        await _sent(batches(), lambda: raise_when_gone(leave))
    assert closed.is_set()


async def test_what_fails_beside_a_long_stream_is_its_last_line() -> None:
    async def beside() -> None:
        raise ValueError("no more")

    async def batches() -> AsyncIterator[Sequence[Struct]]:
        yield [Empty()]
        await asyncio.Event().wait()

    first, last = await _sent(batches(), beside)
    assert first == LINE
    assert last.startswith(b'{"error":')


async def _sent(
    batches: AsyncIterator[Sequence[Struct]], *beside: Callable[[], Coroutine[Any, Any, None]]
) -> list[bytes]:
    """Bodies in the order in which they were sent."""
    bodies: list[bytes] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            bodies.append(message["body"])

    def explain(error: Exception) -> ErrorReply:
        return classify(error, request_id="1")

    await send_stream(
        send,
        StreamResult(batches),
        headers=[],
        coding=PlainCoding(blank_lines=False),
        classify=explain,
        silence_s=60,
        beside=beside,
    )
    return bodies
