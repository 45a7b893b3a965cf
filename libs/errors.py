"""The exceptions that cross the border of a service: one small family, whose messages reach users as they stand.

HTTP does not appear here; ``services/api/http/errors.py`` alone maps these classes to status codes.
"""


class ResoluteError(Exception):
    """Something the caller got wrong, or has to know about; never a bug of ours."""


class InvalidRequest(ResoluteError):
    """A request that cannot be right, whatever the state of the system."""


class FailedPrecondition(ResoluteError):
    """A request that is well formed, but not possible in the present state of the object."""


class Unauthenticated(ResoluteError):
    """Nobody known sent this request."""


class PermissionDenied(ResoluteError):
    """The caller is known, and may not do this."""


class NotFound(ResoluteError):
    """The object does not exist, or is invisible to the caller."""

    def __init__(self, noun: str, ident: object) -> None:
        super().__init__(f"{noun} '{ident}' not found")


class AlreadyExists(ResoluteError):
    """The name or id is taken."""


class ResourceExhausted(ResoluteError):
    """A limit is reached; the caller may try again later."""


class Unimplemented(ResoluteError):
    """A part of the public interface that this release does not have."""


class Unavailable(ResoluteError):
    """A part of the system that is needed does not answer now; the caller should try again."""
