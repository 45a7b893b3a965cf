"""Locks tables for migrations, while services go on using them.

What a migration waits for keeps everybody waiting who comes later and needs a lock that conflicts: behind a transaction
that reads all tables, as a backup is, a lock that excludes readers would keep all of them out until the backup is done.
So it is waited for a moment only, and tried again. A migration that locks a single table, once, holds nothing while it
waits: it is no part of a deadlock.

Migrations that have landed use this: what it does to the database stays as it is.
"""

from __future__ import annotations

import time
from typing import Final, Literal

import asyncpg
import structlog
from alembic import op
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from libs.db.failures import driver_error
from libs.errors import FailedPrecondition

log = structlog.get_logger()

WAITS_FOR_LOCK: Final = "2s"
_PAUSE_S: Final = 3.0
_PATIENCE_S: Final = 1200.0
"""For one table: a backup reads it that long."""

Mode = Literal["SHARE", "SHARE ROW EXCLUSIVE", "ACCESS EXCLUSIVE"]


def lock_table(table: str, mode: Mode) -> None:
    """Lock a table until the migration is committed: the first, and the only one that services know, that it locks.

    SHARE                of CREATE INDEX: nobody writes
    SHARE ROW EXCLUSIVE  of CREATE TRIGGER, and of foreign keys that refer to the table: nobody writes
    ACCESS EXCLUSIVE     of ALTER TABLE and DROP INDEX: nobody reads or writes

    Raises FailedPrecondition when somebody uses the table for so long that the patience is at its end.
    """
    connection = op.get_bind()
    give_up_at = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with connection.begin_nested():
                connection.execute(text(f"SET LOCAL lock_timeout = '{WAITS_FOR_LOCK}'"))
                connection.execute(text(f"LOCK TABLE {table} IN {mode} MODE"))
        except DBAPIError as error:
            in_use = isinstance(driver_error(error), asyncpg.LockNotAvailableError | asyncpg.DeadlockDetectedError)
            if not in_use:
                raise
            if time.monotonic() >= give_up_at:
                raise FailedPrecondition(
                    f"somebody has used the table {table} for {_PATIENCE_S / 60:.0f} minutes; end that, and try again"
                ) from error
            log.info("database.migration_waits", table=table, mode=mode, error=str(driver_error(error)))
            # In the server, so that whatever else the process does goes on.
            connection.execute(text("SELECT pg_sleep(:pause)"), {"pause": _PAUSE_S})
        else:
            return
