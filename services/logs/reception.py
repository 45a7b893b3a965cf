"""Reading a request body without giving it more memory than there is, whatever it claims or hides.

Source: spec/logs.md 13.6 (at least 32 MiB decompressed have to be taken) and 13.8 (which refusal loses lines).
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Final, Self

DECODED_FACTOR: Final = 5
"""Memory that the records of a body take, in multiples of its size; lines of 20 bytes are the worst usual case."""
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
    """What all requests together may occupy."""

    def __init__(self, total_bytes: int) -> None:
        self._free = total_bytes

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

    def give_back(self, size_bytes: int) -> None:
        self._free += size_bytes


class Reservation:
    """The part of one request; what it took goes back when the block ends."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._taken = 0

    def take(self, size_bytes: int) -> None:
        self._budget.take(size_bytes)
        self._taken += size_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._budget.give_back(self._taken)


async def read_body(chunks: AsyncIterator[bytes], *, is_gzip: bool, reservation: Reservation, max_bytes: int) -> bytes:
    """The body, decompressed; memory for it and for its records is reserved as it grows, not afterwards.

    Raises OverloadedError, TooLargeError (more than ``max_bytes``, before or after decompression) and UndecodableError.
    """
    parts: list[bytes] = []
    size = 0
    inflate = _Gzip() if is_gzip else None
    async for chunk in chunks:
        for piece in inflate.pieces(chunk) if inflate else (chunk,):
            size += len(piece)
            if size > max_bytes:
                raise TooLargeError
            reservation.take(len(piece) * DECODED_FACTOR)
            parts.append(piece)
    if inflate and not inflate.complete:
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
