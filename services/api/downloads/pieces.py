"""A blocking iterator as an asynchronous one, a thread away from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Final

_END: Final = b""


async def in_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces, each made in a thread when it is asked for; open files are closed when the consumer stops early."""
    try:
        while piece := await asyncio.to_thread(next, pieces, _END):
            yield piece
    finally:
        if isinstance(pieces, Generator):
            await asyncio.to_thread(pieces.close)
