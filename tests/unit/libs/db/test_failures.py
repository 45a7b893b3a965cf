"""What asyncpg says of a value that does not fit, told from what it says of a lost connection."""

from __future__ import annotations

import asyncpg
import pytest

from libs.db.failures import is_bad_value


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
