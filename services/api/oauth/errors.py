"""Refusals of the token endpoint (RFC 6749 5.2)."""

from __future__ import annotations

from libs.errors import InvalidRequest


class OAuthError(InvalidRequest):
    """``code`` is one of the words of RFC 6749; the text says more."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
