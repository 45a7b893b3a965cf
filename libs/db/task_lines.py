"""Lines that services add to the log of a task: what happened to it, in words its owner reads (spec/logs.md 3)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.outbox import enqueue, log_message
from libs.db.tables.tasks import task_line_seq
from libs.events.logs import LogBatch, LogLine
from libs.loglines.batches import service_stream


async def add_task_line(
    connection: AsyncConnection, *, task: str, allocation: str, text: str, now: datetime, level: str = "INFO"
) -> None:
    """Add one line to the log of ``task`` when the transaction commits.

    The caller holds the lock of the allocation's row: that is what makes the numbers of one stream grow in the order
    in which they are published, so that the writer may drop what it has seen.
    """
    number = (await connection.execute(select(task_line_seq.next_value()))).scalar_one()
    line = LogLine(
        seq=number,
        timestamp_ns=int(now.timestamp() * 1_000_000) * 1_000,
        log=f"{text}\n".encode(),
        level=level,
        stdtype="stdout",
        source="master",
    )
    batch = LogBatch(
        task=task, stream=service_stream(allocation), allocation=allocation, lines=(line,), contiguous=False
    )
    await enqueue(connection, log_message(batch))
