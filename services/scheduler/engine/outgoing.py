"""What a transaction has to say when it commits: public events, orders, lines for task logs; sent in one go."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import func, select

from libs.db.engine import Connection
from libs.db.outbox import enqueue, event_message, log_message, order_message, order_withdrawal
from libs.db.tables.tasks import task_line_seq
from libs.events.changes import PublicEvent
from libs.events.logs import LogBatch, LogLine
from libs.events.orders import Order
from libs.loglines.batches import service_stream


class _Line:
    """A log line that still lacks its number."""

    def __init__(self, task: str, allocation: str, text: str, level: str, now: datetime) -> None:
        self.task = task
        self.allocation = allocation
        self.text = text
        self.level = level
        self.now = now

    def numbered(self, seq: int) -> dict[str, Any]:
        line = LogLine(
            seq=seq,
            timestamp_ns=int(self.now.timestamp() * 1_000_000) * 1_000,
            log=f"{self.text}\n".encode(),
            level=self.level,
            stdtype="stdout",
            source="master",
        )
        return log_message(
            LogBatch(
                task=self.task,
                stream=service_stream(self.allocation),
                allocation=self.allocation,
                lines=(line,),
                contiguous=False,
            )
        )


class Outgoing:
    """Collects in memory; ``flush`` belongs to the end of the transaction.

    Like ``libs.db.task_lines.add_task_line``, whoever adds a line holds the lock of the allocation's row.
    """

    def __init__(self) -> None:
        self._messages: list[dict[str, Any] | _Line] = []
        self.events: Final[list[PublicEvent]] = []

    def announce(self, event: PublicEvent) -> None:
        self.events.append(event)
        self._messages.append(event_message(event))

    def order(self, order: Order) -> None:
        self._messages.append(order_message(order))

    def withdraw(self, pool: str, allocation: str) -> None:
        self._messages.append(order_withdrawal(pool, allocation))

    def line(self, *, task: str, allocation: str, text: str, now: datetime, level: str = "INFO") -> None:
        self._messages.append(_Line(task, allocation, text, level, now))

    def no_more_lines(self, *, task: str, allocation: str) -> None:
        """Nobody has anything more to say about the allocation: who follows the log need not wait for it."""
        stream = service_stream(allocation)
        self._messages.append(
            log_message(
                LogBatch(
                    task=task, stream=stream, allocation=allocation, lines=(), end_of_stream=True, contiguous=False
                )
            )
        )

    async def flush(self, connection: Connection) -> None:
        count = sum(isinstance(message, _Line) for message in self._messages)
        numbers = iter(await _line_numbers(connection, count))
        rows = [m.numbered(next(numbers)) if isinstance(m, _Line) else m for m in self._messages]
        await enqueue(connection, *rows)
        self._messages.clear()


async def _line_numbers(connection: Connection, count: int) -> list[int]:
    if not count:
        return []
    series = func.generate_series(1, count).table_valued("n")
    numbers = (await connection.execute(select(task_line_seq.next_value()).select_from(series))).scalars()
    return sorted(numbers)
