"""Wakes the long polls of a process when the bus has news of what they wait for, over one set of subscriptions.

A notification is a reason to look again, never a fact: the row decides. Whoever waits also looks again now and then by
itself, so that one which is lost costs a delay and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Final

from libs.bus import Bus, CoreMessage
from libs.events import subjects

RECHECK_S: Final = 10.0
"""How long a wait trusts the bus."""


def allocation_topic(allocation_id: str) -> str:
    """All events of an allocation."""
    return _topic(subjects.event("allocation", allocation_id, "any"))


def task_topic(task_id: str) -> str:
    """All events of a task."""
    return _topic(subjects.event("task", task_id, "any"))


def log_topic(task_id: str) -> str:
    """Lines of a task were stored."""
    return _topic(subjects.log_stored(task_id))


def _topic(subject: str) -> str:
    return subject.rpartition(".")[0]


class Notifier:
    """Who waits for what in this process."""

    def __init__(self) -> None:
        self._events: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def watch(self, *topics: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever there is news of one of ``topics``; clear it before looking at the row."""
        event = asyncio.Event()
        for topic in topics:
            self._events.setdefault(topic, set()).add(event)
        try:
            yield event
        finally:
            for topic in topics:
                watching = self._events[topic]
                watching.discard(event)
                if not watching:
                    del self._events[topic]

    def notify(self, topic: str) -> None:
        """Wake whoever watches ``topic``."""
        for event in self._events.get(topic, ()):
            event.set()

    def notify_all(self) -> None:
        """Wake everybody: news may have been missed."""
        for events in self._events.values():
            for event in events:
                event.set()

    @asynccontextmanager
    async def listening(self, bus: Bus) -> AsyncIterator[None]:
        """Pass on what the bus says while the block runs. Raises Unavailable when it takes no subscription."""
        heard = (
            # Without what launchers observe: it changes nothing here until the scheduler has put it into the row.
            subjects.events_of("allocation"),
            subjects.events_of("task"),
            subjects.ALL_LOGS_STORED,
        )
        async with AsyncExitStack() as stack:
            for subject in heard:
                await stack.enter_async_context(bus.subscribe(subject, self._on_message, on_gap=self.notify_all))
            yield

    async def _on_message(self, message: CoreMessage) -> None:
        self.notify(_topic(message.subject))
