"""Bounds the memory of all large bodies under way together: a few at once would end the process otherwise."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from libs.errors import Unavailable

BODY_FACTOR: Final = 4
"""Memory that a body takes until its answer, in multiples of its size: in pieces, whole, decoded, and packed."""
SMALL_BYTES: Final = 256 * 1024
"""Bodies up to here are not counted; nearly all are."""


class UploadMemory:
    """What is left for large bodies, in one process."""

    def __init__(self, total_bytes: int) -> None:
        self.free_bytes = total_bytes

    def reservation(self) -> UploadReservation:
        return UploadReservation(self)


class UploadReservation:
    """The part of one request; what it took comes back when the block ends."""

    def __init__(self, memory: UploadMemory) -> None:
        self._memory = memory
        self._taken_bytes = 0

    def grow(self, size: int) -> None:
        """Take what a body of ``size`` bytes needs. Raises Unavailable when there is no room."""
        if size <= SMALL_BYTES:
            return
        more = size * BODY_FACTOR - self._taken_bytes
        if more > self._memory.free_bytes:
            raise Unavailable("too many large uploads at the same time, try again")
        self._memory.free_bytes -= more
        self._taken_bytes += more

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._memory.free_bytes += self._taken_bytes
