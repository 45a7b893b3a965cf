"""Error replies: the only place that knows HTTP status codes, gRPC codes and the shapes of error bodies.

A 503 carries ``Retry-After``: without it the clients in training code do not try again, and the run dies.
Source: docs/reference/platform.md 1.3 and 1.4, docs/reference/tasks-and-cli.md 1.3,
docs/reference/harness-protocol.md 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec

from libs import errors
from services.api.http.database_errors import as_known_error

STATUS: Final[Mapping[type[errors.ResoluteError], tuple[int, int, str]]] = {
    # class: HTTP status, gRPC code, gRPC name
    errors.InvalidRequest: (400, 3, "InvalidArgument"),
    errors.NotFound: (404, 5, "NotFound"),
    errors.AlreadyExists: (409, 6, "AlreadyExists"),
    errors.PermissionDenied: (403, 7, "PermissionDenied"),
    errors.ResourceExhausted: (429, 8, "ResourceExhausted"),
    errors.FailedPrecondition: (400, 9, "FailedPrecondition"),
    errors.Unimplemented: (501, 12, "Unimplemented"),
    errors.Unavailable: (503, 14, "Unavailable"),
    errors.Unauthenticated: (401, 16, "Unauthenticated"),
    # A subclass that says nothing more precise is still something the caller got wrong.
    errors.ResoluteError: (400, 3, "InvalidArgument"),
}

RETRY_AFTER: Final = (b"retry-after", b"1")


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """What went wrong, in every vocabulary that some client reads.

    unexpected  a bug of ours: the message is generic, the stack belongs into the log
    allow       methods that the path has, where the request's is none of them
    """

    status: int
    code: int
    reason: str
    message: str
    unexpected: bool = False
    allow: tuple[str, ...] = ()

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Headers that belong to this reply."""
        if self.allow:
            return ((b"allow", ", ".join(self.allow).encode()),)
        return (RETRY_AFTER,) if self.status == HTTPStatus.SERVICE_UNAVAILABLE else ()

    def api_body(self) -> bytes:
        """The body of an error under /api/v1."""
        return _line({"error": {"code": self.code, "reason": self.reason, "error": self.message}})

    def plain_body(self) -> bytes:
        """The body of an error anywhere else."""
        return _line({"message": self.message})

    def stream_body(self) -> bytes:
        """The body of an error of a stream: instead of it, or as its last line.

        ``error`` is not in the reference; it is where the client looks for the text of most statuses.
        """
        return _line(
            {
                "error": {
                    "grpcCode": self.code,
                    "httpCode": self.status,
                    "message": self.message,
                    "httpStatus": HTTPStatus(self.status).phrase,
                    "details": [],
                    "error": self.message,
                }
            }
        )


UNKNOWN_API_PATH: Final = ErrorReply(501, 12, "Unimplemented", "Not Implemented")


def unknown_method(method: str, allow: tuple[str, ...]) -> ErrorReply:
    """The answer for a path that does not have the method (RFC 9110, 15.5.6), where the reference answers with 501."""
    return ErrorReply(405, 12, "Unimplemented", f"method {method} is not allowed: {', '.join(allow)}", allow=allow)


def unknown_path(method: str, path: str) -> ErrorReply:
    """The answer for a path outside of /api/v1 that nobody serves."""
    return ErrorReply(404, 5, "NotFound", f"api not found: {method} {path}")


def classify(error: Exception, *, request_id: str) -> ErrorReply:
    """The answer for an exception; what is not foreseen becomes a 500 whose text says only where to look in the log."""
    known = error if isinstance(error, errors.ResoluteError) else as_known_error(error)
    if known is None:
        return ErrorReply(500, 13, "Internal", f"internal server error (request {request_id})", unexpected=True)
    for ancestor in type(known).__mro__:
        if ancestor in STATUS:
            status, code, reason = STATUS[ancestor]
            # Texts quote what clients sent, and escapes in JSON or YAML make surrogates that no answer can carry.
            return ErrorReply(status, code, reason, str(known).encode("utf-8", "replace").decode())
    raise AssertionError("ResoluteError itself is in the table")


def _line(body: object) -> bytes:
    return msgspec.json.encode(body) + b"\n"
