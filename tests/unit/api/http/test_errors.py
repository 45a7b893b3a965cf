"""Every exception has one answer, in the vocabulary of each kind of client."""

from __future__ import annotations

import asyncpg
import msgspec
import pytest
from sqlalchemy import exc as sqlalchemy_errors

from libs import errors
from services.api.http.errors import STATUS, classify


class OwnConflict(errors.AlreadyExists):
    """A subclass somewhere in the project."""


class OwnComplaint(errors.ResoluteError):
    """One that says nothing more precise."""


def in_sqlalchemy(original: Exception) -> sqlalchemy_errors.DBAPIError:
    return sqlalchemy_errors.DBAPIError("SELECT 1", {}, original)


ANSWERS = [
    (errors.InvalidRequest("m"), 400, 3, "InvalidArgument", "m"),
    (errors.FailedPrecondition("m"), 400, 9, "FailedPrecondition", "m"),
    (errors.Unauthenticated("m"), 401, 16, "Unauthenticated", "m"),
    (errors.PermissionDenied("m"), 403, 7, "PermissionDenied", "m"),
    (errors.NotFound("experiment", 7), 404, 5, "NotFound", "experiment '7' not found"),
    (errors.AlreadyExists("m"), 409, 6, "AlreadyExists", "m"),
    (errors.ResourceExhausted("m"), 429, 8, "ResourceExhausted", "m"),
    (errors.Unimplemented("m"), 501, 12, "Unimplemented", "m"),
    (errors.Unavailable("m"), 503, 14, "Unavailable", "m"),
    (OwnConflict("m"), 409, 6, "AlreadyExists", "m"),
    (OwnComplaint("m"), 400, 3, "InvalidArgument", "m"),
]


@pytest.mark.parametrize(("error", "status", "code", "reason", "message"), ANSWERS)
def test_our_own_errors(error: Exception, status: int, code: int, reason: str, message: str) -> None:
    failure = classify(error, request_id="r")
    assert (failure.status, failure.code, failure.reason, failure.message) == (status, code, reason, message)
    assert not failure.unexpected
    assert (failure.headers == ((b"retry-after", b"1"),)) == (status == 503)


def test_the_whole_family_has_an_answer() -> None:
    assert set(errors.ResoluteError.__subclasses__()) - set(STATUS) <= {OwnComplaint, *_elsewhere()}


def _elsewhere() -> set[type]:
    return {kind for kind in errors.ResoluteError.__subclasses__() if kind.__module__ != "libs.errors"}


FOREIGN = [
    (ConnectionRefusedError("refused"), 503),
    (OSError("Multiple exceptions: refused, refused"), 503),
    (TimeoutError(), 503),
    (sqlalchemy_errors.TimeoutError("QueuePool limit"), 503),
    (asyncpg.CannotConnectNowError("starting up"), 503),
    (asyncpg.AdminShutdownError("bye"), 503),
    (asyncpg.SerializationError("try again"), 503),
    (asyncpg.DeadlockDetectedError("dead"), 503),
    (asyncpg.TooManyConnectionsError("many"), 503),
    (asyncpg.ReadOnlySQLTransactionError("standby"), 503),
    (asyncpg.InterfaceError("connection is closed"), 503),
    (asyncpg.ConnectionDoesNotExistError("closed in the middle"), 503),
    (in_sqlalchemy(asyncpg.DeadlockDetectedError("dead")), 503),
    (in_sqlalchemy(asyncpg.InterfaceError("connection is closed")), 503),
    (asyncpg.UniqueViolationError("users_name_key"), 409),
    (asyncpg.ForeignKeyViolationError("fk"), 400),
    (asyncpg.NumericValueOutOfRangeError("int4"), 400),
    (asyncpg.DataError("invalid input for query argument $1: value out of int32 range"), 400),
    (in_sqlalchemy(asyncpg.CharacterNotInRepertoireError("0x00")), 400),
    (in_sqlalchemy(asyncpg.ProgramLimitExceededError("index row size 4024 exceeds btree version 4 maximum 2704")), 400),
    (asyncpg.UndefinedTableError("no such table"), 500),
    (in_sqlalchemy(asyncpg.InterfaceError("the number of query arguments cannot exceed 32767")), 500),
    (sqlalchemy_errors.InvalidRequestError("a bug"), 500),
    (FileNotFoundError(2, "no such file", "x"), 500),
    (ZeroDivisionError("a bug"), 500),
]


@pytest.mark.parametrize(("error", "status"), FOREIGN, ids=[f"{type(error).__name__}-{n}" for n, (error, _) in enumerate(FOREIGN)])  # noqa: E501  # fmt: skip
def test_foreign_errors(error: Exception, status: int) -> None:
    failure = classify(error, request_id="r")
    assert failure.status == status
    assert failure.unexpected == (status == 500)


def test_unexpected_errors_tell_only_where_to_look() -> None:
    failure = classify(ZeroDivisionError("secret"), request_id="abc")
    assert failure.message == "internal server error (request abc)"
    assert (failure.code, failure.reason) == (13, "Internal")


def test_bodies() -> None:
    failure = classify(errors.NotFound("task", "x"), request_id="r")
    text = "task 'x' not found"
    assert msgspec.json.decode(failure.api_body()) == {"error": {"code": 5, "reason": "NotFound", "error": text}}
    assert msgspec.json.decode(failure.plain_body()) == {"message": text}
    assert msgspec.json.decode(failure.stream_body()) == {
        "error": {
            "grpcCode": 5,
            "httpCode": 404,
            "message": text,
            "httpStatus": "Not Found",
            "details": [],
            "error": text,
        }
    }
    assert failure.stream_body().count(b"\n") == 1
