"""Lines that are too long for one message are cut, never inside a UTF-8 character."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

MAX_LINE_BYTES: Final = 256 * 1024
"""A line that is longer never comes from the capture wrapper, which cuts far earlier; a client may post one."""


def pieces(log: bytes, limit: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """The line in parts of at most ``limit`` bytes (4 or more) that concatenate to the line; b'' is one part."""
    start = 0
    while len(log) - start > limit:
        end = _character_border(log, start, start + limit)
        yield log[start:end]
        start = end
    yield log[start:] if start else log


def truncated(log: bytes, limit: int = MAX_LINE_BYTES) -> bytes:
    """The line, or its beginning and a note how much is left out."""
    if len(log) <= limit:
        return log
    end = _character_border(log, 0, limit)
    return log[:end] + b"... (%d bytes left out)\n" % (len(log) - end)


def _character_border(log: bytes, start: int, end: int) -> int:
    """``end``, or up to 3 bytes before it, such that no UTF-8 character spans it."""
    for border in range(end, max(start, end - 4), -1):
        if log[border] & 0xC0 != 0x80:  # not a continuation byte
            return border
    return end  # not UTF-8 at all
