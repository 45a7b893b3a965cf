"""Reads a request body without giving it more memory than there is, whatever it claims or hides.

Source: docs/reference/logs.md 13.6 (at least 32 MiB decompressed have to be taken) and 13.8 (which refusal loses
lines).
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self

from services.logs.settings import DECODED_FACTOR

_PIECE_BYTES: Final = 1 << 20


class ReceptionError(Exception):
    """A body that is not taken."""


class OverloadedError(ReceptionError):
    """There is no memory for this request now."""


class TooLargeError(ReceptionError):
    """No request may ever be this large."""


class UndecodableError(ReceptionError):
    """The compressed data is broken."""


class MemoryBudget:
    """What all requests together may occupy. Who finds too little waits for his turn: first come, first served."""

    def __init__(self, total_bytes: int, *, max_wait_s: float = 0.0) -> None:
        """``max_wait_s`` is how long somebody waits at most."""
        self._free = total_bytes
        self._max_wait_s = max_wait_s
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def free_bytes(self) -> int:
        return self._free

    def reservation(self) -> Reservation:
        return Reservation(self)

    def take(self, size_bytes: int) -> None:
        """Raises OverloadedError, and takes nothing, when it is not there."""
        if size_bytes > self._free:
            raise OverloadedError
        self._free -= size_bytes

    async def take_in_turn(self, size_bytes: int) -> None:
        """Wait behind those who wait already; raises OverloadedError, having taken nothing, when that is too long."""
        if not self._queue and size_bytes <= self._free:
            self._free -= size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((size_bytes, turn))
        try:
            async with asyncio.timeout(self._max_wait_s):
                await turn
        except TimeoutError as error:
            self._leave(size_bytes, turn)
            raise OverloadedError from error
        except asyncio.CancelledError:
            self._leave(size_bytes, turn)
            raise

    def give_back(self, size_bytes: int) -> None:
        self._free += size_bytes
        self._serve()

    def _leave(self, size_bytes: int, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self.give_back(size_bytes)  # it came in the same moment
        else:
            self._queue.remove((size_bytes, turn))
            self._serve()

    def _serve(self) -> None:
        while self._queue and self._queue[0][0] <= self._free:
            size_bytes, turn = self._queue.popleft()
            self._free -= size_bytes
            turn.set_result(None)


class Reservation:
    """The part of one request; what it took goes back when the block ends."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._taken = 0

    def grow_to(self, size_bytes: int) -> None:
        """Have at least so much; without waiting, since who holds something must not wait for more."""
        more = size_bytes - self._taken
        if more > 0:
            self._budget.take(more)
            self._taken += more

    async def take_in_turn(self, size_bytes: int) -> None:
        await self._budget.take_in_turn(size_bytes)
        self._taken += size_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._budget.give_back(self._taken)


class Reception:
    """Bodies on their way in: first as they come, compressed, then decompressed and with room for their records.

    A burst of one shipper is more than fits at once. Nothing of a body is read before there is room for it, which
    holds the sender up, and everybody has his turn in the order in which he came, which keeps the oldest first.
    """

    def __init__(self, *, received: MemoryBudget, decoded: MemoryBudget, max_body_bytes: int) -> None:
        self._received = received
        self._decoded = decoded
        self._max_body_bytes = max_body_bytes

    @asynccontextmanager
    async def body(self, chunks: AsyncIterator[bytes], *, is_gzip: bool, length: int) -> AsyncIterator[bytes]:
        """The body, decompressed, with memory for its records as long as the block runs.

        length  bytes that the request announces; 0 when it does not

        Raises OverloadedError, TooLargeError (more than ``max_body_bytes``, before or after decompression) and
        UndecodableError.
        """
        with self._decoded.reservation() as decoded:
            with self._received.reservation() as received:
                raw = await self._read(chunks, received, length)
                await decoded.take_in_turn(self._claimed_size(raw, is_gzip) * DECODED_FACTOR)
                body = await self._inflated(raw, decoded) if is_gzip else raw
            del raw
            yield body

    async def _read(self, chunks: AsyncIterator[bytes], received: Reservation, length: int) -> bytes:
        if length > self._max_body_bytes:
            raise TooLargeError
        await received.take_in_turn(length)
        parts: list[bytes] = []
        size = 0
        async for chunk in chunks:
            size += len(chunk)
            if size > self._max_body_bytes:
                raise TooLargeError
            received.grow_to(size)
            parts.append(chunk)
        return b"".join(parts)

    def _claimed_size(self, raw: bytes, is_gzip: bool) -> int:
        """Size after decompression; that of gzip is what its last member says (RFC 1952 2.3.1), so only a claim."""
        size = int.from_bytes(raw[-4:], "little") if is_gzip else len(raw)
        return min(size, self._max_body_bytes)

    async def _inflated(self, raw: bytes, decoded: Reservation) -> bytes:
        inflate = _Gzip()
        parts: list[bytes] = []
        size = 0
        for piece in inflate.pieces(raw):
            size += len(piece)
            if size > self._max_body_bytes:
                raise TooLargeError
            decoded.grow_to(size * DECODED_FACTOR)
            parts.append(piece)
            await asyncio.sleep(0)  # a large body holds nobody up
        if not inflate.complete:
            raise UndecodableError("the compressed data ends too early")
        return b"".join(parts)


class _Gzip:
    """Decompression in pieces of bounded size; several members in a row are one body (RFC 1952 2.2)."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None

    @property
    def complete(self) -> bool:
        """Whether the body may end here: between two members."""
        return self._member is None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data or self._member is not None:
            if self._member is None:
                self._member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
            try:
                piece = self._member.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise UndecodableError(str(error)) from error
            if piece:
                yield piece
            if self._member.eof:
                data = self._member.unused_data
                self._member = None
                continue
            data = self._member.unconsumed_tail
            if not data and len(piece) < _PIECE_BYTES:
                return
