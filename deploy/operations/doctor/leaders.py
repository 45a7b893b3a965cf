"""Who acts: one scheduler holds the lease, and one service publishes the outbox. Both are advisory locks."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

import asyncpg
from msgspec import Struct

from deploy.operations.doctor.findings import Finding, ok, problem
from libs.db.connecting.settings import DatabaseSettings, address
from libs.db.failures import DRIVER_ERRORS
from libs.db.relay import RELAY_LOCK
from services.scheduler.scheduler_lease import SCHEDULER_LOCK

PART: Final = "scheduler"
OUTBOX: Final = "outbox"
ANSWERS_WITHIN_S: Final = 5.0
WAITS_LONG_S: Final = 30.0
"""Longer than a message waits whatever is restarted."""

# A key of 64 bits is shown in two halves (PostgreSQL manual, pg_locks).
_HOLDERS: Final = """
    SELECT count(*) FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (classid::bigint << 32) | objid::bigint = $1
"""


class Leaders(Struct, frozen=True, kw_only=True):
    schedules: bool
    relays: bool
    now: datetime
    oldest_message: datetime | None
    """When the oldest message was written that is not on the bus yet."""


async def check_leaders(settings: DatabaseSettings) -> list[Finding]:
    """Nothing when the database does not answer, or has no schema: that is said elsewhere."""
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            return about_leaders(await _look(address(settings)))
    except (OSError, TimeoutError, *DRIVER_ERRORS):
        return []


async def _look(url: str) -> Leaders:
    connection = await asyncpg.connect(url, timeout=ANSWERS_WITHIN_S)
    try:
        return Leaders(
            schedules=bool(await connection.fetchval(_HOLDERS, SCHEDULER_LOCK)),
            relays=bool(await connection.fetchval(_HOLDERS, RELAY_LOCK)),
            now=await connection.fetchval("SELECT clock_timestamp()"),
            oldest_message=await connection.fetchval("SELECT min(created_at) FROM outbox"),
        )
    finally:
        await connection.close()


def about_leaders(seen: Leaders) -> list[Finding]:
    """Pure."""
    if seen.schedules:
        scheduler = ok(PART, "one holds the lease")
    else:
        scheduler = problem(PART, "none holds the lease: nothing is started", remedy="start one, or read why it ends")
    return [scheduler, _about_outbox(seen)]


def _about_outbox(seen: Leaders) -> Finding:
    if not seen.relays:
        remedy = "start an api or a scheduler"
        return problem(OUTBOX, "nobody publishes what is committed", remedy=remedy)
    waits_s = 0.0 if seen.oldest_message is None else (seen.now - seen.oldest_message).total_seconds()
    if waits_s > WAITS_LONG_S:
        remedy = "see what the log of the service that publishes says of the bus"
        return problem(OUTBOX, f"a message has waited for the bus for {waits_s:.0f} s", remedy=remedy)
    return ok(OUTBOX, "messages are published as they are committed")
