"""Tells the owners of tasks why these wait: a line in the log of the task and an event, when the sentence changes.

A task gets one line a minute at most, however often its sentence changes, and none while it has waited for a few
seconds only. The plans write sentences down without looking at this; a loop of its own catches up with them.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Final

from libs.clock import Clock
from libs.db.engine import Connection, Database
from libs.db.prepared.statements import PreparedStatement
from libs.events.changes import AllocationChanged
from libs.states.allocation import AllocationState
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.workqueue.loops import run_periodically

EVERY_S: Final = 5.0
NOT_BEFORE: Final = timedelta(seconds=5)
"""Waiting of this length is told; what starts sooner has no line about it."""
PAUSE: Final = timedelta(minutes=1)
"""Between two lines of a task."""
_AT_ONCE: Final = 200
"""Lines of one round; the next one goes on with those that were told nothing for the longest time."""

# The rows of allocations are locked: that makes the numbers of the lines of a task grow in the order of their commits.
_UNTOLD: Final = PreparedStatement("""
    SELECT a.allocation_id, a.task_id, a.pool, a.wait_reason,
           CASE WHEN starts_with(a.wait_reason, n.reason) THEN n.code ELSE '' END AS code
    FROM allocations a JOIN wait_notes n ON n.task_id = a.task_id AND n.allocation_id = a.allocation_id
    WHERE a.released_at IS NULL AND a.assigned_at IS NULL AND a.requested_at <= :waited_since
      AND a.wait_reason NOT IN ('', n.told)
      AND NOT EXISTS (SELECT FROM wait_notes o WHERE o.task_id = a.task_id AND o.told_at > :told_since)
    ORDER BY n.told_at NULLS FIRST, a.allocation_id LIMIT :most
    FOR NO KEY UPDATE OF a SKIP LOCKED
""")
_TOLD: Final = PreparedStatement("""
    UPDATE wait_notes n SET told = t.told, told_at = :now
    FROM unnest(:tasks::text[], :ids::text[], :sentences::text[]) AS t (task_id, allocation_id, told)
    WHERE n.task_id = t.task_id AND n.allocation_id = t.allocation_id
""")
# As long as its last line is fresh, a task may come back with another allocation, which must not get the next line yet.
_FORGET: Final = PreparedStatement("""
    DELETE FROM wait_notes n
    WHERE (n.told_at IS NULL OR n.told_at <= :told_since) AND NOT EXISTS (
        SELECT FROM allocations a
        WHERE a.allocation_id = n.allocation_id AND a.released_at IS NULL AND a.assigned_at IS NULL
    )
""")


class WaitLines:
    def __init__(self, *, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def run(self) -> None:
        """Now and then, until cancelled."""
        await run_periodically("wait lines", self.tell, every_s=EVERY_S, wake=asyncio.Event())

    async def tell(self) -> int:
        """Tell what is new; returns how many lines there were."""
        async with self._db.transaction() as connection:
            return await tell_waits(connection, now=self._clock.now())


async def tell_waits(connection: Connection, *, now: datetime) -> int:
    told_since = now - PAUSE
    found = await _UNTOLD.rows(connection, waited_since=now - NOT_BEFORE, told_since=told_since, most=_AT_ONCE)
    out = OutboxBuffer()
    for row in found:
        sentence = row["wait_reason"]
        text = f"In the queue of {row['pool']}: {sentence}"
        out.line(task=row["task_id"], allocation=row["allocation_id"], text=text, now=now)
        event = AllocationChanged(
            allocation_id=row["allocation_id"],
            task_id=row["task_id"],
            what="waits",
            state=AllocationState.PENDING,
            pool=row["pool"],
            reason_code=row["code"],
            reason=sentence,
        )
        out.announce(event)
    if found:
        await _TOLD.rows(
            connection,
            tasks=[row["task_id"] for row in found],
            ids=[row["allocation_id"] for row in found],
            sentences=[row["wait_reason"] for row in found],
            now=now,
        )
    await out.flush(connection)
    await _FORGET.rows(connection, told_since=told_since)
    return len(found)
