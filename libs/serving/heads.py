"""Limits what of a request may come before its body. Pure.

The parser keeps an unfinished line and copies it for each piece that arrives, so an endless header costs the square of
its length. It tells of lines only once they are finished; what it was fed since it last told anything is the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import TypeAlias

from libs.serving.limits import HttpLimits

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Names and values."""


class RequestRefused(Exception):
    """A request that is answered by the server itself, and is the last one of its connection."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HeadMeter:
    """Measures what one request after the other brings besides its body.

    Lengths are looked at only for a request that was fed more than any bound allows, which hardly one is.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._harmless_bytes = min(limits.line_bytes, limits.head_bytes)
        self._fed_bytes = 0
        """Of this request, with what was before it in the piece where it began."""
        self._piece_bytes = 0
        self._untold_bytes = 0
        self._told_parts = 0
        """Bytes of the request line and headers that the parser had told of when it was last asked."""
        self._headers_before_body = 0

    def feed(self, size: int) -> None:
        """Count a piece that the parser is about to get."""
        self._piece_bytes = size
        self._fed_bytes += size
        self._untold_bytes += size

    def begin(self) -> None:
        """A new request begins."""
        self._fed_bytes = self._piece_bytes
        self._untold_bytes = self._told_parts = self._headers_before_body = 0

    def told(self) -> None:
        """Something else of the request was complete."""
        self._untold_bytes = 0

    def complete(self, request_line: bytes, headers: Headers) -> None:
        """The body begins; headers behind it are told from the first again. Raises RequestRefused."""
        self._check_told(request_line, headers)
        self._headers_before_body = len(headers)
        self._untold_bytes = 0
        self._told_parts = len(request_line)

    def check(self, request_line: bytes, headers: Headers) -> None:
        """Raises RequestRefused for what the parser told, or when it was silent long: that is an endless line."""
        told_parts = len(request_line) + len(headers)
        if told_parts != self._told_parts:
            self._told_parts = told_parts
            self._untold_bytes = 0
            self._check_told(request_line, headers)
        elif self._untold_bytes > self._limits.line_bytes:
            raise _too_large("A header is too long.")

    def _check_told(self, request_line: bytes, headers: Headers) -> None:
        if self._headers_before_body + len(headers) > self._limits.headers:
            raise _too_large("There are too many headers.")
        if self._fed_bytes <= self._harmless_bytes:
            return
        if len(request_line) > self._limits.line_bytes:
            raise RequestRefused(HTTPStatus.REQUEST_URI_TOO_LONG, "The request line is too long.")
        sizes = [len(name) + len(value) for name, value in headers]
        if max(sizes, default=0) > self._limits.line_bytes:
            raise _too_large("A header is too long.")
        if len(request_line) + sum(sizes) > self._limits.head_bytes:
            raise _too_large("The headers are too long.")


def _too_large(reason: str) -> RequestRefused:
    return RequestRefused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, reason)
