"""Listens to the bus for webhooks: durable consumers keep what happens while no scheduler is active.

The consumer of all events is there from when the first webhook asks for it, so that an installation without such
webhooks reads no more than the states of experiments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from sqlalchemy import select

from libs.bus import Bus
from libs.db.engine import Database
from libs.db.tables.cluster import cluster
from libs.events import subjects
from libs.run_until_first_exits import end, run_until_first_exits
from libs.webhooks.events import TriggerType
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks.collector import Collector
from services.scheduler.webhooks.public_events import PublicEvents
from services.scheduler.webhooks.state_changes import deliveries_of_changes
from services.scheduler.webhooks.triggers import is_any_of
from services.scheduler.workqueue.loops import run_periodically

UNDER_WAY: Final = 256
"""Messages that become deliveries in one transaction at most."""


class BusWebhooks:
    """See the functions it passes on to for what becomes of a message."""

    def __init__(self, *, db: Database, bus: Bus, settings: WebhookSettings, news: Callable[[], None]) -> None:
        self._db = db
        self._bus = bus
        self._settings = settings
        self._news = news
        self._following: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Listen until cancelled."""
        collector = Collector(db=self._db, match=deliveries_of_changes, news=self._news)
        try:
            await run_until_first_exits(
                collect=collector.run(),
                states=self._bus.consume(
                    stream=subjects.EVENTS_STREAM,
                    durable=subjects.WEBHOOK_STATES,
                    filter=subjects.events_of("experiment", what="state"),
                    handler=collector.handle,
                    concurrency=UNDER_WAY,
                ),
                all_events=run_periodically(
                    "event webhooks", self._look, every_s=self._settings.look_s, wake=asyncio.Event()
                ),
            )
        finally:
            if self._following is not None:
                await end(self._following)

    async def _look(self) -> None:
        """Follow all events if and only if some webhook wants them."""
        if self._following is not None and self._following.done():
            following, self._following = self._following, None
            await following  # raises why it ended
        async with self._db.read() as connection:
            wanted = await is_any_of(connection, TriggerType.EVENT, TriggerType.METRIC_THRESHOLD_EXCEEDED)
        if wanted and self._following is None:
            async with self._db.read() as connection:
                cluster_id = str((await connection.execute(select(cluster.c.cluster_id))).scalar_one())
            self._following = asyncio.create_task(self._follow(cluster_id), name="event webhooks")
        if not wanted and self._following is not None:
            following, self._following = self._following, None
            await end(following)

    async def _follow(self, cluster_id: str) -> None:
        collector = Collector(db=self._db, match=PublicEvents(cluster_id).deliveries, news=self._news)
        await run_until_first_exits(
            collect=collector.run(),
            events=self._bus.consume(
                stream=subjects.EVENTS_STREAM,
                durable=subjects.WEBHOOK_EVENTS,
                filter=subjects.ALL_EVENTS,
                handler=collector.handle,
                concurrency=UNDER_WAY,
            ),
        )
