"""Lines that services add to the log of a task: what happened to it, in words its owner reads
(docs/reference/logs.md 3)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from libs.db.outbox import enqueue, log_message
from libs.db.prepared.statements import Connection, PreparedStatement
from libs.loglines.service_lines import service_batch, service_line

_NUMBERS: Final = PreparedStatement("SELECT nextval('task_line_seq') AS number FROM generate_series(1, :count::int)")


async def add_task_line(
    connection: Connection, *, task: str, allocation: str, text: str, now: datetime, level: str = "INFO"
) -> None:
    """Add one line to the log of ``task`` when the transaction commits.

    The caller holds the lock of the allocation's row: that is what makes the numbers of one stream grow in the order
    in which they are published, so that the writer may drop what it has seen.
    """
    (number,) = await line_numbers(connection, 1)
    line = service_line(text, seq=number, at=now, level=level)
    await enqueue(connection, log_message(service_batch([line], task=task, allocation=allocation)))


async def line_numbers(connection: Connection, count: int) -> list[int]:
    """As many new numbers for lines, ascending."""
    if not count:
        return []
    return sorted(row["number"] for row in await _NUMBERS.rows(connection, count=count))
