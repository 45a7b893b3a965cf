"""Ends what belongs to an allocation in the transaction that ends it: its sessions, waits in its all-gathers, and the
note of its polls."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import delete

from libs.db.any_of import any_of
from libs.db.engine import Connection
from libs.db.tables.tasks import gather_members, preemption_polls
from libs.events.changes import AllocationChanged, PublicEvent
from services.scheduler.allocations.task_tokens import revoke_of_allocations


async def clear_ended(connection: Connection, events: Iterable[PublicEvent], *, now: datetime) -> None:
    """Do it for all allocations that ``events`` say have ended."""
    ended = [event.allocation_id for event in events if isinstance(event, AllocationChanged) and event.what == "ended"]
    if ended:
        await revoke_of_allocations(connection, ended, now=now)
        # Nobody is answered from these rows any more: an all-gather of what has ended is refused.
        await connection.execute(delete(gather_members).where(any_of(gather_members.c.allocation_id, ended)))
        await connection.execute(delete(preemption_polls).where(any_of(preemption_polls.c.allocation_id, ended)))
