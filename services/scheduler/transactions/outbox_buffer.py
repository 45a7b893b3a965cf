"""Buffers the messages of a transaction until it commits: public events, orders, lines for task logs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from libs.db.engine import Connection
from libs.db.event_fields import completed
from libs.db.outbox import (
    enqueue,
    event_message,
    key_withdrawal,
    log_message,
    order_message,
    order_withdrawal,
    placeholders_message,
)
from libs.db.task_lines import line_numbers
from libs.events.changes import PublicEvent
from libs.events.logs import LogLine
from libs.events.orders import Order, PlaceholderOrder
from libs.events.subjects import placeholders_key
from libs.loglines.service_lines import service_batch, service_line


class _Lines:
    """Log lines about one allocation, which still lack their numbers; they go out together."""

    def __init__(self, task: str, allocation: str) -> None:
        self._task = task
        self._allocation = allocation
        self._lines: list[LogLine] = []

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, text: str, level: str, now: datetime) -> None:
        self._lines.append(service_line(text, seq=0, at=now, level=level))

    def numbered(self, numbers: Iterator[int]) -> dict[str, Any]:
        lines = [msgspec.structs.replace(line, seq=next(numbers)) for line in self._lines]
        return log_message(service_batch(lines, task=self._task, allocation=self._allocation))


class OutboxBuffer:
    """Collects in memory; ``flush`` belongs to the end of the transaction.

    Like ``libs.db.task_lines.add_task_line``, whoever adds a line holds the lock of the allocation's row.
    """

    def __init__(self) -> None:
        self._messages: list[dict[str, Any] | _Lines] = []
        self._lines: dict[str, _Lines] = {}
        self._announced: list[tuple[int, PublicEvent]] = []
        self.events: Final[list[PublicEvent]] = []

    def announce(self, event: PublicEvent) -> None:
        self.events.append(event)
        self._announced.append((len(self._messages), event))
        self._messages.append(event_message(event))

    def order(self, order: Order) -> None:
        self._messages.append(order_message(order))

    def withdraw(self, pool: str, allocation: str) -> None:
        self._messages.append(order_withdrawal(pool, allocation))

    def placeholders(self, order: PlaceholderOrder) -> None:
        self._messages.append(placeholders_message(order))

    def withdraw_placeholders(self, pool: str) -> None:
        self._messages.append(key_withdrawal(placeholders_key(pool)))

    def line(self, *, task: str, allocation: str, text: str, now: datetime, level: str = "INFO") -> None:
        if allocation not in self._lines:
            self._lines[allocation] = _Lines(task, allocation)
            self._messages.append(self._lines[allocation])
        self._lines[allocation].add(text, level, now)

    def no_more_lines(self, *, task: str, allocation: str) -> None:
        """Nobody has anything more to say about the allocation: who follows the log need not wait for it."""
        self._messages.append(log_message(service_batch((), task=task, allocation=allocation, is_end=True)))

    async def flush(self, connection: Connection) -> None:
        """The rows that the events tell of have been written."""
        whole = await completed(connection, [event for _, event in self._announced])
        for (position, event), complete in zip(self._announced, whole, strict=True):
            if complete is not event:
                self._messages[position] = event_message(complete)
        count = sum(len(lines) for lines in self._lines.values())
        numbers = iter(await line_numbers(connection, count))
        rows = [one.numbered(numbers) if isinstance(one, _Lines) else one for one in self._messages]
        await enqueue(connection, *rows)
        self._messages.clear()
        self._lines.clear()
        self._announced.clear()
