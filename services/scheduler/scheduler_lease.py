"""Lease of the one active scheduler; the others stand by and take over within a second or so.

The lease is a session-level advisory lock on a connection of its own: PostgreSQL frees it with the connection, so there
is no clock to disagree about. For a moment two schedulers may both believe to be the one (the old one has yet to notice
that its connection is gone); every loop is correct then too, as each decision is made under row locks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import asyncpg
import structlog

from libs.db.failures import DRIVER_ERRORS, is_connection_failure
from libs.run_until_first_exits import run_until_first_exits
from libs.telemetry import gauge
from services.scheduler.settings import LeaseSettings

log = structlog.get_logger()

SCHEDULER_LOCK: Final = 0x5E50_1076
"""Key of the advisory lock; any number that nothing else uses."""
CHECK_TIMEOUT_S: Final = 5.0
ACTIVE: Final = gauge("resolute_scheduler_active", "1 in the scheduler that holds the lease")


class LeaseLost(Exception):
    """The connection that holds the lease does not answer."""


async def hold_lease(
    url: Callable[[], str], act: Callable[[], Coroutine[Any, Any, None]], settings: LeaseSettings
) -> None:
    """Run ``act`` whenever, and as long as, this process holds the lease; until cancelled.

    url  where the database is and how to log in, asked for each connection: a password may change meanwhile
    ``act`` is cancelled when the lease is lost, and run again after it is won back. What it raises ends this too.
    """
    while True:
        try:
            await _once(url(), act, settings)
        except (LeaseLost, OSError, *DRIVER_ERRORS) as error:
            if not isinstance(error, LeaseLost) and not is_connection_failure(error):
                raise
            log.warning("lease.lost", error=str(error))
        await asyncio.sleep(settings.retry_s)


async def _once(url: str, act: Callable[[], Coroutine[Any, Any, None]], settings: LeaseSettings) -> None:
    connection = await asyncpg.connect(
        url,
        timeout=10,
        command_timeout=CHECK_TIMEOUT_S,
        server_settings={"application_name": "resolute-scheduler-lease", "tcp_keepalives_idle": "10"},
    )
    try:
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", SCHEDULER_LOCK):  # noqa: ASYNC110
            await asyncio.sleep(settings.retry_s)
        log.info("lease.won")
        ACTIVE.set(1)
        await run_until_first_exits(lease_check=_check(connection, settings.check_s), active=act())
    finally:
        ACTIVE.set(0)
        connection.terminate()  # frees the lock at once, also when the connection is half dead


async def _check(connection: Any, every_s: float) -> None:
    """Ask again and again whether the connection lives. Raises LeaseLost when it does not."""
    while True:
        await asyncio.sleep(every_s)
        try:
            await connection.fetchval("SELECT 1")
        except (OSError, TimeoutError, *DRIVER_ERRORS) as error:
            raise LeaseLost(f"the connection of the lease is gone: {error!r}") from error
