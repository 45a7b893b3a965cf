"""Tell a database that is lost, not there yet or out of resources from a statement that is wrong."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeGuard

import asyncpg

if TYPE_CHECKING:
    from sqlalchemy.exc import DBAPIError

DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What asyncpg raises, besides OSError: the last when a connection ends under it at an awkward moment."""
MAYBE_BAD_VALUE: Final = (asyncpg.DataError, asyncpg.InterfaceError, OverflowError)
"""What asyncpg raises for a value that does not fit, among other things; ``is_bad_value`` tells these apart."""
_ABOUT_ARGUMENTS: Final = re.compile(r"number of query arguments|server expects \d+ arguments?")
_LOST: Final = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
)
_CANNOT_WORK: Final = ("53", "58")
"""Classes of SQLSTATE: insufficient resources, such as a full disk (53100), and errors of the system around the server,
such as one of input or output (58030). The same statement works once that is over (PostgreSQL manual, appendix A)."""
_READ_ONLY: Final = "25006"
"""What a server says that was the primary a moment ago."""


def is_connection_failure(error: BaseException) -> bool:
    """True when the database was lost, takes no connection or cannot work now, rather than the statement wrong.

    A server whose disk is full is the same to its clients as one that is away: they wait, and try again.
    """
    if is_refused_by_driver(error):
        return False
    if _is_from_sqlalchemy(error, "OperationalError", "InterfaceError"):
        return True
    if _is_wrapped(error) and error.connection_invalidated:
        return True
    if _is_from_sqlalchemy(error, "TimeoutError"):
        return True  # no connection is free: those that there are wait for a server that hangs
    cause = driver_error(error)
    return isinstance(cause, _LOST) or _cannot_work(cause)


def _cannot_work(cause: BaseException | None) -> bool:
    state = getattr(cause, "sqlstate", None) if isinstance(cause, asyncpg.PostgresError) else None
    return state is not None and (state.startswith(_CANNOT_WORK) or state == _READ_ONLY)


def driver_error(error: BaseException) -> BaseException | None:
    """What asyncpg said, behind the error and the adapter of SQLAlchemy; they do not tell one refusal from another."""
    return error.orig.__cause__ if _is_wrapped(error) and error.orig is not None else error


def is_refused_by_driver(error: BaseException) -> bool:
    """True when asyncpg would not send the statement, because of its arguments: another try will end the same way.

    It says InterfaceError of that as well as of most that happens to a connection on this side of the wire.
    """
    cause = driver_error(error)
    if not isinstance(cause, asyncpg.InterfaceError):
        return False
    return isinstance(cause, ValueError) or _ABOUT_ARGUMENTS.search(str(cause)) is not None


def is_bad_value(error: BaseException) -> bool:
    """True when a value does not fit its column: the server refused it, or asyncpg could not even encode it."""
    if isinstance(error, asyncpg.InterfaceError):
        return isinstance(error, ValueError)
    return isinstance(error, MAYBE_BAD_VALUE)


def may_be_starting(error: BaseException) -> bool:
    """True for whatever a database may answer before it has ever answered well, refused credentials included."""
    return is_of_database(error)


def is_of_database(error: BaseException) -> bool:
    """True for whatever a database or the way to it says."""
    return isinstance(error, (OSError, *DRIVER_ERRORS)) or _is_wrapped(error)


async def problem_of(ask: Callable[[], Awaitable[object]]) -> str | None:
    """Why a database that is asked cannot be relied on now; None when it answers. Raises what it has not said."""
    try:
        await ask()
    except Exception as error:
        if not is_of_database(error):
            raise
        return f"does not answer: {error}"
    return None


def _is_wrapped(error: BaseException) -> TypeGuard[DBAPIError]:
    return _is_from_sqlalchemy(error, "DBAPIError")


def _is_from_sqlalchemy(error: BaseException, *names: str) -> bool:
    """Whether it is one of these errors, without loading SQLAlchemy: where that is not loaded, nobody raises them."""
    errors = sys.modules.get("sqlalchemy.exc")
    return errors is not None and isinstance(error, tuple(getattr(errors, name) for name in names))
