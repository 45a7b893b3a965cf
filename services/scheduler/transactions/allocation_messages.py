"""Messages about an allocation: lines in the log of its task, and the event that says what changed. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from libs.events.changes import AllocationChanged
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow


def note(row: AllocationRow, text: str, *, now: datetime, out: OutboxBuffer, level: str = "INFO") -> None:
    """A line in the log of its task."""
    out.line(task=row.task_id, allocation=row.allocation_id, text=text, now=now, level=level)


def changed(row: AllocationRow, what: Literal["requested", "state", "signal", "ended"]) -> AllocationChanged:
    return AllocationChanged(
        allocation_id=row.allocation_id,
        task_id=row.task_id,
        what=what,
        state=row.state,
        pool=row.pool,
        exit_reason=row.exit_reason or "",
        exit_code=row.status_code,
    )
