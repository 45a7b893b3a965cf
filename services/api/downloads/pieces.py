"""A blocking iterator as an asynchronous one, in threads of its own: storage that hangs holds up downloads only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from libs.errors import Unavailable

_END: Final = b""
AT_ONCE: Final = 16
"""Pieces that are made at the same time; further downloads take turns."""
PATIENCE_S: Final = 60.0
"""How long a piece may take, with waiting for its turn; longer than storage is asked again."""


log = structlog.get_logger(__name__)


class Downloads:
    """The threads of one process in which pieces are made."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="download")
        self._patience_s = patience_s

    async def stream(self, pieces: Iterator[bytes], *, source: str) -> AsyncIterator[bytes]:
        """The pieces, each made when it is asked for; open files are closed when the consumer stops early.

        source  where they come from, for whoever waits
        Raises Unavailable when a piece takes too long: a thread cannot be interrupted, but nobody has to wait for it.
        """
        loop = asyncio.get_running_loop()
        making: asyncio.Future[bytes] | None = None
        try:
            while True:
                making = loop.run_in_executor(self._threads, next, pieces, _END)
                await asyncio.wait([making], timeout=self._patience_s)
                if not making.done():
                    log.warning("storage.failed", storage=source, error="slow", reason=f"{self._patience_s:g} s")
                    raise Unavailable(f"{source} is too slow: nothing came for {self._patience_s:g} seconds")
                if not (piece := making.result()):
                    return
                yield piece
        finally:
            if making is not None and not making.done():
                making.add_done_callback(lambda late: _close(pieces, late))  # a running generator cannot be closed
            else:
                _close(pieces)


def _close(pieces: Iterator[bytes], late: asyncio.Future[bytes] | None = None) -> None:
    if late is not None and not late.cancelled():
        late.exception()  # nobody waits for it any more
    if isinstance(pieces, Generator):
        pieces.close()
