"""What a provider of identities can get wrong, and how it is told (RFC 7644 3.12). Pure.

Without the library of SCIM: whoever is refused for a wrong password does not have it loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from libs.errors import AlreadyExists, InvalidRequest, NotFound, ResoluteError, Unauthenticated

ERROR_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:Error"


class InvalidFilter(InvalidRequest):
    """A filter that cannot be read, or that asks for what cannot be searched."""


class InvalidPath(InvalidRequest):
    """A path of an attribute that there is not."""


class InvalidSyntax(InvalidRequest):
    """A request whose structure is not that of SCIM."""


class UnknownCaller(Unauthenticated):
    """Nobody known called; ``challenge`` says how to be known."""

    def __init__(self, message: str, *, challenge: str) -> None:
        super().__init__(message)
        self.challenge = challenge


class NotThere(NotFound):
    """A path that this installation does not serve."""

    def __init__(self, method: str, path: str) -> None:
        Exception.__init__(self, f"api not found: {method} {path}")


_TYPES: Final[Mapping[type[ResoluteError], str]] = {
    InvalidFilter: "invalidFilter",
    InvalidPath: "invalidPath",
    InvalidSyntax: "invalidSyntax",
    InvalidRequest: "invalidValue",
    AlreadyExists: "uniqueness",
}


def error_body(error: Exception, *, status: int, message: str) -> dict[str, Any]:
    """The body of a refusal; ``status`` is a text in it."""
    kind = next((_TYPES[each] for each in type(error).__mro__ if each in _TYPES), None)
    named = {} if kind is None else {"scimType": kind}
    return {"schemas": [ERROR_SCHEMA], "status": str(status), **named, "detail": message}


def no_such(kind: str, ident: str) -> NotFound:
    """A resource that there is not."""
    return NotFound(kind, ident[:100])
