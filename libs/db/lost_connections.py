"""Replaces connections that were lost while nobody used them: a restart of the database costs no failed request.

A server that goes says so, and the driver knows of it. One that is gone without a word, as with its machine, is asked
whether it is there before a connection is used that has rested; asking each time would cost every read three round
trips more (``pool_pre_ping`` of SQLAlchemy).
"""

from __future__ import annotations

import time
from typing import Any, Final

from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError, InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncEngine

RESTED_S: Final = 1.0
_USED_AT: Final = "used_at"


def replace_lost_connections(engine: AsyncEngine) -> None:
    """Let the pool of ``engine`` give out connections of which nothing says that they are lost."""
    dialect = engine.sync_engine.dialect

    def check(connection: Any, record: Any, _: Any) -> None:
        if connection.driver_connection.is_closed():
            raise InvalidatePoolError("the database has closed the connection")
        if connection.driver_connection.is_in_transaction():
            # Of the driver alone, so that the pool did not end it: whoever reads in it would see what was long ago.
            raise DisconnectionError("the connection was given back in a transaction")
        used_at = record.info.get(_USED_AT)
        if used_at is None or time.monotonic() - used_at < RESTED_S:
            return
        try:
            dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as error:
            raise InvalidatePoolError("the database does not answer") from error

    def note(_: Any, record: Any) -> None:
        record.info[_USED_AT] = time.monotonic()

    event.listen(engine.sync_engine, "checkout", check)
    event.listen(engine.sync_engine, "checkin", note)


def put_back_unused(taken: Any, used_at: float) -> None:
    """Return to its pool a connection that has rested since ``used_at``, a time of the monotonic clock."""
    info = taken.info
    taken.close()
    info[_USED_AT] = used_at
