"""Answers to errors of the database, or of the way to it: which a client should try again, and which it caused.

A net below the code that uses the database, so that a restart of PostgreSQL or a lost race is never a 500 that ends
somebody's training run. SQLSTATE classes: PostgreSQL manual, appendix A.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import exc as sqlalchemy_errors

from libs.db.failures import is_refused_by_driver
from libs.errors import AlreadyExists, FailedPrecondition, InvalidRequest, ResoluteError, Unavailable

_AWAY_CLASSES: Final = (
    "08",  # connection exception
    "40",  # transaction rollback: serialization failure, deadlock
    "53",  # insufficient resources
    "57",  # operator intervention: shutdown, crash recovery, statement timeout
    "58",  # system error
)
_AWAY_STATES: Final = frozenset(
    {
        "25006",  # read-only: a standby that was the primary a moment ago
        "55P03",  # lock not available
        "25P03",  # idle in transaction too long
    }
)
_UNIQUE_VIOLATION: Final = "23505"
_FOREIGN_KEY_VIOLATION: Final = "23503"
_BAD_VALUE_CLASS: Final = "22"
_LIMIT_CLASS: Final = "54"
"""A limit of the program, as of what fits into an index: whatever is beyond it came with the request."""
_LOST: Final = frozenset({"InterfaceError", "InternalClientError"})


def as_known_error(error: BaseException) -> ResoluteError | None:
    """The error of our own family that a foreign one amounts to, or None when it is a bug."""
    if isinstance(error, (TimeoutError, sqlalchemy_errors.TimeoutError)) or _is_network(error):
        return Unavailable("a service that is needed does not answer, try again")
    if not isinstance(error, sqlalchemy_errors.SQLAlchemyError) and not _is_asyncpg(error):
        return None
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(state := getattr(cause, "sqlstate", None), str):
            return _by_sqlstate(state)
    if any(_is_asyncpg(cause) and isinstance(cause, ValueError) for cause in chain):
        return InvalidRequest("a value is out of range")  # refused by asyncpg before it reached the server
    # What the driver refuses, as too many arguments, is no lost connection: asking again would not help.
    is_lost = any(map(_is_lost_connection, chain)) and not any(map(is_refused_by_driver, chain))
    return Unavailable("the database does not answer, try again") if is_lost else None


def is_away(error: BaseException) -> bool:
    """Whether the error says no more than that something needed does not answer now."""
    return isinstance(error, Unavailable) or isinstance(as_known_error(error), Unavailable)


def _by_sqlstate(state: str) -> ResoluteError | None:
    if state[:2] in _AWAY_CLASSES or state in _AWAY_STATES:
        return Unavailable("the database does not answer, try again")
    if state == _UNIQUE_VIOLATION:
        return AlreadyExists("duplicate record")
    if state == _FOREIGN_KEY_VIOLATION:
        return FailedPrecondition("something this refers to does not exist, or is still in use")
    if state[:2] == _BAD_VALUE_CLASS:
        return InvalidRequest("a value is out of range")
    if state[:2] == _LIMIT_CLASS:
        return InvalidRequest("a value is too long")
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = getattr(cause, "orig", None) or cause.__cause__


def _is_asyncpg(error: BaseException) -> bool:
    return type(error).__module__.startswith("asyncpg.")


def _is_network(error: BaseException) -> bool:
    # An operating system error about a file names it; a refused connection or an unknown host does not.
    return isinstance(error, OSError) and error.filename is None


def _is_lost_connection(error: BaseException) -> bool:
    # asyncpg says InterfaceError for everything that happens to a connection on this side of the wire, and
    # InternalClientError when an idle one is cut in the middle of being taken out of the pool.
    return (
        isinstance(error, sqlalchemy_errors.InterfaceError)
        or _is_network(error)
        or getattr(error, "connection_invalidated", False)
        or bool(_is_asyncpg(error) and _LOST & {ancestor.__name__ for ancestor in type(error).__mro__})
    )
