"""What asyncpg says of a value that does not fit, told from what it says of a database that is lost or cannot work."""

from __future__ import annotations

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from libs.db.failures import is_bad_value, is_connection_failure


class NotEncodableError(asyncpg.InterfaceError, ValueError):
    """As asyncpg raises it, by a class that it keeps to itself."""


@pytest.mark.parametrize(
    ("error", "is_bad"),
    [
        (asyncpg.DataError("invalid byte sequence"), True),
        (NotEncodableError("invalid input for query argument $1"), True),
        (OverflowError("value out of int64 range"), True),
        (asyncpg.InterfaceError("connection is closed"), False),
        (asyncpg.DeadlockDetectedError("deadlock detected"), False),
        (OSError("connection reset"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_value_that_does_not_fit_is_told_from_other_failures(error: Exception, *, is_bad: bool) -> None:
    assert is_bad_value(error) is is_bad


def as_sqlalchemy_raises(cause: Exception) -> DBAPIError:
    adapted = Exception(str(cause))
    adapted.__cause__ = cause
    return DBAPIError("INSERT", None, adapted)


@pytest.mark.parametrize("wrapped", [False, True], ids=["asyncpg", "SQLAlchemy"])
@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (asyncpg.DiskFullError("could not extend file: No space left on device"), True),
        (asyncpg.OutOfMemoryError("out of memory"), True),
        (asyncpg.PostgresIOError("could not fsync file: Input/output error"), True),
        (asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction"), True),
        (asyncpg.CrashShutdownError("terminating connection because of crash of another server process"), True),
        (asyncpg.UndefinedTableError("relation does not exist"), False),
        (asyncpg.ProgramLimitExceededError("index row size exceeds maximum"), False),
        (asyncpg.UniqueViolationError("duplicate key"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_database_that_cannot_work_now_is_waited_for(error: Exception, *, passes: bool, wrapped: bool) -> None:
    assert is_connection_failure(as_sqlalchemy_raises(error) if wrapped else error) is passes


def test_connections_that_all_hang_are_waited_for() -> None:
    assert is_connection_failure(NoConnectionFree("QueuePool limit of size 6 overflow 0 reached"))
