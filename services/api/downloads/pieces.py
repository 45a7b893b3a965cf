"""A blocking iterator as an asynchronous one, a thread away from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Final

_END: Final = b""


async def in_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces, each made in a thread when it is asked for; open files are closed when the consumer stops early."""
    making: asyncio.Future[bytes] | None = None
    try:
        while True:
            making = asyncio.ensure_future(asyncio.to_thread(next, pieces, _END))
            piece = await asyncio.shield(making)
            if not piece:
                return
            yield piece
    finally:
        if making is not None:
            await asyncio.wait([making])  # a thread cannot be interrupted, nor a generator closed while it runs
        if isinstance(pieces, Generator):
            pieces.close()
