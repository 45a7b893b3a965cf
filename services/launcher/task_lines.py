"""Publishes lines to the log of a task, in order, and keeps them while the bus is away."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from libs.errors import Unavailable
from libs.events.logs import LogBatch
from libs.telemetry import counter

log = structlog.get_logger()

Publish = Callable[[LogBatch], Awaitable[None]]

LINES: Final = counter("resolute_launcher_kubernetes_lines_total", "Lines about tasks", "outcome")

MAX_WAITING: Final = 20_000
"""Lines that are kept while the bus is away; the cluster keeps events for an hour, and a restart reads them again."""
RETRY_S: Final = 1.0


class Lines:
    def __init__(self) -> None:
        self._waiting: deque[LogBatch] = deque()
        self._wake = asyncio.Event()

    def say(self, batch: LogBatch) -> None:
        if not batch.task:
            return  # nobody knows whose log it would belong to
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.popleft()
            LINES.labels("dropped").inc()
        self._waiting.append(batch)
        self._wake.set()

    async def run(self, publish: Publish) -> None:
        """Publish what is said, in order, until cancelled.

        ``publish`` raises Unavailable when it has to be repeated; the same line may come more than once.
        """
        while True:
            while self._waiting:
                batch = self._waiting[0]
                try:
                    await publish(batch)
                except Unavailable as error:
                    log.warning("task_lines.not_published", error=str(error), waiting=len(self._waiting))
                    await asyncio.sleep(RETRY_S)
                    continue
                LINES.labels("published").inc()
                if self._waiting and self._waiting[0] is batch:
                    self._waiting.popleft()
            self._wake.clear()
            await self._wake.wait()
