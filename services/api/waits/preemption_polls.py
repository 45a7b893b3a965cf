"""Notes that training code asks whether to leave: so the scheduler knows of tasks that lost the way to the api."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, func, literal, null, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.tasks import allocations, preemption_polls


async def note_poll(connection: AsyncConnection, allocation_id: str, now: datetime) -> None:
    """A poll of the allocation is open at ``now``; nothing of one that is gone by then."""
    # The lock keeps the row until the reference to it is committed.
    known = (
        select(allocations.c.allocation_id, literal(now, preemption_polls.c.polled_at.type))
        .where(allocations.c.allocation_id == allocation_id, allocations.c.released_at.is_(None))
        .with_for_update(read=True, key_share=True)
    )
    adding = insert(preemption_polls).from_select(["allocation_id", "polled_at"], known)
    columns = preemption_polls.c
    # Clocks of several replicas differ: what is known never becomes older.
    newest = func.greatest(columns.polled_at, adding.excluded.polled_at)
    values = {"polled_at": newest, "absence_noted_at": null()}
    await connection.execute(adding.on_conflict_do_update(index_elements=[columns.allocation_id], set_=values))


async def expect_no_polls(connection: AsyncConnection, allocation_id: str) -> None:
    """The training code has ended, and will not ask any more."""
    await connection.execute(delete(preemption_polls).where(preemption_polls.c.allocation_id == allocation_id))
