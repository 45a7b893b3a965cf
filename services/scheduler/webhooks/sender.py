"""Sends what waits for webhooks: looks for it, and has each receiver work beside the others."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Final

import structlog

from libs.clock import Clock
from libs.cluster.config import WebhooksConfig
from libs.db.engine import Database
from libs.outbound.addresses import networks
from libs.run_until_first_exits import end
from libs.webhooks.deliveries import load_signing_key
from libs.webhooks.posting import Poster, open_poster
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks.receiver import DELIVERIES, Receiver
from services.scheduler.webhooks.waiting import due_webhooks, forget_oldest
from services.scheduler.workqueue.loops import pause_after, report, run_periodically

log = structlog.get_logger()

FORGET_EVERY_S: Final = 60.0
LOOP: Final = "webhooks"


class WebhookSender:
    """What it knows of receivers is gone with it: the next one asks them all again."""

    def __init__(self, *, db: Database, clock: Clock, config: WebhooksConfig, settings: WebhookSettings) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._settings = settings
        self._news = asyncio.Event()
        self._poster: Poster | None = None
        """From when the first webhook has to be told of something."""
        self._receivers: dict[int, Receiver] = {}
        self._working: dict[int, asyncio.Task[None]] = {}
        self._forgot_at = -FORGET_EVERY_S

    def look_now(self) -> None:
        """Something may have come."""
        self._news.set()

    async def run(self) -> None:
        """Send until cancelled; what is under way then comes again."""
        async with AsyncExitStack() as stack:
            try:
                await run_periodically(LOOP, lambda: self._look(stack), every_s=self._settings.look_s, wake=self._news)
            finally:
                await end(*self._working.values())
                self._poster = None

    async def _look(self, stack: AsyncExitStack) -> None:
        async with self._db.read() as connection:
            due = await due_webhooks(connection)
            key = await load_signing_key(connection, self._config.signing_key) if due else ""
        for webhook_id in due:
            if webhook_id in self._working:
                continue
            if self._poster is None:
                allowed = networks(self._config.allowed_networks)
                opening = open_poster(allowed=allowed, timeout_s=self._settings.timeout_s)
                self._poster = await stack.enter_async_context(opening)
            receiver = self._receivers.setdefault(webhook_id, self._receiver(webhook_id, self._poster, key))
            if receiver.may_send:
                self._working[webhook_id] = asyncio.create_task(self._work(webhook_id, receiver), name="webhook")
        for webhook_id in [known for known in self._receivers if known not in due and known not in self._working]:
            if self._receivers[webhook_id].may_send:
                del self._receivers[webhook_id]  # whose pause is over and who has nothing to send needs no memory
        await self._forget()

    def _receiver(self, webhook_id: int, poster: Poster, key: str) -> Receiver:
        return Receiver(
            webhook_id,
            db=self._db,
            clock=self._clock,
            poster=poster,
            settings=self._settings,
            base_url=self._config.base_url.rstrip("/"),
            signing_key=key,
        )

    async def _work(self, webhook_id: int, receiver: Receiver) -> None:
        try:
            await receiver.work()
        except Exception as error:  # noqa: BLE001  # the rim of the loop; the rows are still there
            pause_s = pause_after(1)
            report(LOOP, error, pause_s=pause_s)
            await asyncio.sleep(pause_s)
        finally:
            del self._working[webhook_id]

    async def _forget(self) -> None:
        if time.monotonic() < self._forgot_at + FORGET_EVERY_S:
            return
        self._forgot_at = time.monotonic()
        async with self._db.transaction() as connection:
            dropped = await forget_oldest(connection, most=self._settings.most_waiting)
        if dropped:
            DELIVERIES.labels("dropped").inc(dropped)
            log.warning("webhook.too_many_waited", dropped=dropped, kept=self._settings.most_waiting)
