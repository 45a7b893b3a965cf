"""Long poll of training code that asks whether it should leave; answered the moment it should
(docs/reference/harness-protocol.md 12.2)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog
from sqlalchemy import Row, Select, select

from libs.clock import Clock
from libs.db.engine import Database
from libs.db.failures import is_connection_failure
from libs.db.tables.tasks import allocations, preemption_polls
from libs.db.transactions import in_transaction
from libs.errors import FailedPrecondition
from libs.states.allocation import AllocationState
from libs.tasks.preemption_polls import is_due
from libs.waiting import wait_until_set
from services.api.waits.notifier import RECHECK_S, Notifier, allocation_topic
from services.api.waits.preemption_polls import note_poll

LONGEST_S: Final = 3600.0
"""A longer wait is answered after this time; clients ask again."""

log = structlog.get_logger()


async def wait_for_preemption(
    db: Database, notifier: Notifier, allocation_id: str, *, timeout_s: float, poll_clock: Clock | None = None
) -> bool:
    """Whether the allocation is asked to leave: waits up to ``timeout_s`` for that; 0 only looks.

    An allocation that has ended has to leave; one that is unknown is asked nothing, and need not wait to hear so.
    Raises FailedPrecondition for one that cannot be preempted.

    poll_clock  given when the training code itself asks: tells when it did, which is noted
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + min(timeout_s, LONGEST_S)
    with notifier.watch(allocation_topic(allocation_id)) as news:
        while True:
            news.clear()
            row = await _look(db, allocation_id)
            leave = _has_to_leave(row)
            left_s = deadline_s - loop.time()
            if leave is None:
                return False
            if poll_clock is not None and not leave:
                await _note(db, allocation_id, row, poll_clock)
            if leave or left_s <= 0:
                return leave
            await wait_until_set(news, timeout_s=min(left_s, RECHECK_S))


async def _look(db: Database, allocation_id: str) -> Row[Any] | None:
    """None for an allocation that is unknown."""
    columns, polls = allocations.c, preemption_polls.c
    query: Select[Any] = (
        select(columns.preemptible, columns.preempted_at, columns.state, polls.polled_at, polls.absence_noted_at)
        .outerjoin(preemption_polls, polls.allocation_id == columns.allocation_id)
        .where(columns.allocation_id == allocation_id)
    )
    async with db.read() as connection:
        row: Row[Any] | None = (await connection.execute(query)).one_or_none()
    return row


def _has_to_leave(row: Row[Any] | None) -> bool | None:
    if row is None:
        return None
    if row.state == AllocationState.TERMINATED:
        return True
    if not row.preemptible:
        raise FailedPrecondition("allocation is not preemptible")
    return row.preempted_at is not None


async def _note(db: Database, allocation_id: str, row: Row[Any] | None, clock: Clock) -> None:
    """Note the poll if that is due. A database that takes nothing now is no reason not to answer what it says."""
    now = clock.now()
    if row is None or not is_due(row.polled_at, absence_noted=row.absence_noted_at is not None, now=now):
        return
    try:
        await in_transaction(db, lambda connection: note_poll(connection, allocation_id, now))
    except Exception as error:
        if not is_connection_failure(error):
            raise
        log.warning("preemption_poll.not_noted", allocation=allocation_id, error=str(error))
