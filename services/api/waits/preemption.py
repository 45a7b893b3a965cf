"""Long poll of training code that asks whether it should leave; answered the moment it should
(docs/reference/harness-protocol.md 12.2)."""

from __future__ import annotations

import asyncio
from typing import Final

from sqlalchemy import select

from libs.db.engine import Database
from libs.db.tables.tasks import allocations
from libs.errors import FailedPrecondition
from libs.states.allocation import AllocationState
from libs.waiting import wait_until_set
from services.api.waits.notifier import RECHECK_S, Notifier, allocation_topic

LONGEST_S: Final = 3600.0
"""A longer wait is answered after this time; clients ask again."""


async def wait_for_preemption(db: Database, notifier: Notifier, allocation_id: str, *, timeout_s: float) -> bool:
    """Whether the allocation is asked to leave: waits up to ``timeout_s`` for that; 0 only looks.

    An allocation that has ended has to leave; one that is unknown is asked nothing, and need not wait to hear so.
    Raises FailedPrecondition for one that cannot be preempted.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + min(timeout_s, LONGEST_S)
    with notifier.watch(allocation_topic(allocation_id)) as news:
        while True:
            news.clear()
            leave = await _look(db, allocation_id)
            left_s = deadline_s - loop.time()
            if leave is None:
                return False
            if leave or left_s <= 0:
                return leave
            await wait_until_set(news, timeout_s=min(left_s, RECHECK_S))


async def _look(db: Database, allocation_id: str) -> bool | None:
    """None for an allocation that is unknown."""
    columns = allocations.c
    query = select(columns.preemptible, columns.preempted_at, columns.state)
    async with db.read() as connection:
        row = (await connection.execute(query.where(columns.allocation_id == allocation_id))).one_or_none()
    if row is None:
        return None
    if row.state == AllocationState.TERMINATED:
        return True
    if not row.preemptible:
        raise FailedPrecondition("allocation is not preemptible")
    return row.preempted_at is not None
