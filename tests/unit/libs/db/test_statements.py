"""What is sent to the database, and what it means when that does not work."""

from __future__ import annotations

import asyncpg
import pytest
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.exc import DBAPIError, InterfaceError

from libs.db.any_of import any_of
from libs.db.failures import is_connection_failure
from libs.db.tables.tasks import allocations
from libs.db.tables.trials import trials


def in_sqlalchemy(error: Exception) -> DBAPIError:
    """As SQLAlchemy hands it on: behind an error of its own adapter."""
    adapted = Exception(f"{type(error)}: {error}")
    adapted.__cause__ = error
    kind = InterfaceError if isinstance(error, asyncpg.InterfaceError) else DBAPIError
    return kind("SELECT", {}, adapted)


FAILURES = [
    (asyncpg.InterfaceError("connection is closed"), True),
    (asyncpg.InterfaceError("cannot perform operation: another operation is in progress"), True),
    (asyncpg.InternalClientError("got result for unknown protocol state 3"), True),
    (asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"), True),
    (asyncpg.AdminShutdownError("terminating connection"), True),
    (asyncpg.CannotConnectNowError("the database system is starting up"), True),
    (asyncpg.TooManyConnectionsError("sorry, too many clients already"), True),
    (ConnectionRefusedError("refused"), True),
    (asyncpg.InterfaceError("the number of query arguments cannot exceed 32767"), False),
    (asyncpg.InterfaceError("the server expects 2 arguments for this query, 1 was passed"), False),
    (asyncpg.DataError("invalid input for query argument $1: 'x' (an integer is required)"), False),
    (asyncpg.UniqueViolationError("users_name_key"), False),
]


@pytest.mark.parametrize(("error", "lost"), FAILURES, ids=[str(error)[:50] for error, _ in FAILURES])
def test_what_the_driver_refuses_is_no_lost_connection(error: Exception, lost: bool) -> None:
    assert is_connection_failure(error) is lost
    assert is_connection_failure(in_sqlalchemy(error)) is lost


def test_list_of_any_length_is_one_argument() -> None:
    by_id = any_of(trials.c.id, range(100_000)).compile(dialect=dialect())
    by_name = any_of(allocations.c.allocation_id, ()).compile(dialect=dialect())
    assert str(by_id) == "trials.id = ANY ($1::BIGINT[])"
    assert str(by_name) == "allocations.allocation_id = ANY ($1::TEXT[])"
    assert len(by_id.params) == len(by_name.params) == 1
