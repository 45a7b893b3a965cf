"""How a stream that has nothing to say stays open: bytes that connect the two sides and that no reader ever sees.

Proxies end a response that has been silent for too long (nginx after 60 s). The unmodified client hands every line to
a JSON parser: an empty line ends it with a traceback, and so do spaces that no line follows. What it does decode before
it looks for lines is gzip, of which an empty block is a valid part (RFC 1951 3.2.4) that stands for no bytes at all.
So clients that accept gzip get their stream in its blocks, uncompressed, and an empty block while there is nothing.
Those that accept no gzip, and ask for ``application/x-ndjson``, get an empty line, which that format allows.
Source: docs/reference/tasks-and-cli.md 1.4, docs/reference/logs.md 4.1.
"""

from __future__ import annotations

import zlib
from typing import Final, Protocol

from services.api.http.replies.reply import Headers, accepts_gzip

LINES_TYPE: Final = "application/x-ndjson"
"""What streams are called for clients that ask for it; the reference calls them application/json."""
VARY: Final = (b"vary", b"Accept-Encoding")
_EMPTY_BLOCK: Final = b"\x00\x00\x00\xff\xff"
_STORED: Final = 0
_SMALLEST_WINDOW_WITH_GZIP_HEADER: Final = 16 + 9
_LEAST_MEMORY: Final = 1


class StreamCoding(Protocol):
    """The bytes of one response."""

    @property
    def headers(self) -> Headers: ...

    def encode(self, lines: bytes) -> bytes:
        """Bytes from which the client has ``lines`` as soon as it gets them."""

    def silence(self) -> bytes:
        """Bytes that mean nothing; none when there are none for this client."""

    def end(self) -> bytes:
        """What completes the response."""


class PlainCoding:
    """Lines as they are.

    blank_lines  whether the client passes over empty lines
    """

    headers: Headers

    def __init__(self, *, blank_lines: bool) -> None:
        self._blank_lines = blank_lines
        self.headers = [VARY]

    def encode(self, lines: bytes) -> bytes:
        return lines

    def silence(self) -> bytes:
        return b"\n" if self._blank_lines else b""

    def end(self) -> bytes:
        return b""


class GzipCoding:
    """Lines in blocks of gzip, each complete when it is sent; nothing is compressed, which costs next to nothing."""

    headers: Headers

    def __init__(self) -> None:
        self._blocks = zlib.compressobj(_STORED, zlib.DEFLATED, _SMALLEST_WINDOW_WITH_GZIP_HEADER, _LEAST_MEMORY)
        self._has_begun = False
        self.headers = [VARY, (b"content-encoding", b"gzip")]

    def encode(self, lines: bytes) -> bytes:
        self._has_begun = True
        return self._blocks.compress(lines) + self._blocks.flush(zlib.Z_SYNC_FLUSH)

    def silence(self) -> bytes:
        """What was flushed ends with a whole byte, so an empty block can follow anything."""
        return _EMPTY_BLOCK if self._has_begun else self.encode(b"")

    def end(self) -> bytes:
        return self._blocks.flush(zlib.Z_FINISH)


def coding_for(*, accept: str, accept_encoding: str) -> StreamCoding:
    """The coding of a stream for a request with these headers."""
    return GzipCoding() if accepts_gzip(accept_encoding) else PlainCoding(blank_lines=LINES_TYPE in accept.lower())
