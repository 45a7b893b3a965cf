"""How much of a request may come before its body. Pure.

The parser keeps an unfinished line and copies it for each piece that arrives, so an endless header costs the square of
its length. It tells of lines only once they are finished; what it was fed since it last told anything is the rest.
"""

from __future__ import annotations

from http import HTTPStatus

from libs.serving.limits import HttpLimits


class Refusal(Exception):
    """A request that is answered by the server itself, and is the last one of its connection."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HeadMeter:
    """Counts what one request after the other brings besides its body."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._line_bytes = 0
        self._head_bytes = 0
        self._headers = 0
        self._untold_bytes = 0

    def begin(self) -> None:
        """A new request begins."""
        self._line_bytes = self._head_bytes = self._headers = self._untold_bytes = 0

    def request_line(self, size: int) -> None:
        """Count a piece of the request line. Raises Refusal."""
        self._untold_bytes = 0
        self._line_bytes += size
        if self._line_bytes > self._limits.line_bytes:
            raise Refusal(HTTPStatus.REQUEST_URI_TOO_LONG, "The request line is too long.")
        self._add(size)

    def header(self, size: int) -> None:
        """Count a header, before the body or behind it. Raises Refusal."""
        self._untold_bytes = 0
        self._headers += 1
        if self._headers > self._limits.headers:
            raise _too_large("There are too many headers.")
        if size > self._limits.line_bytes:
            raise _too_large("A header is too long.")
        self._add(size)

    def told(self) -> None:
        """Something else of the request was complete."""
        self._untold_bytes = 0

    def fed(self, size: int) -> None:
        """Count a piece that the parser is about to get."""
        self._untold_bytes += size

    def check(self) -> None:
        """Raises Refusal when the parser has long been silent: what it got is an unfinished line."""
        if self._untold_bytes > self._limits.line_bytes:
            raise _too_large("A header is too long.")

    def _add(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes:
            raise _too_large("The headers are too long.")


def _too_large(reason: str) -> Refusal:
    return Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, reason)
