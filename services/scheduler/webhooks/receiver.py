"""Sends what waits for one webhook, with a pause for it alone while its receiver does not answer as it should.

A receiver that fails is asked with one event at a time, each time later. Whatever happens to one receiver is nothing
to the others: each has connections, pauses and failures of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog

from libs.clock import Clock
from libs.db.engine import Database
from libs.db.failures import is_connection_failure
from libs.telemetry import counter
from libs.webhooks.bodies import request_of
from libs.webhooks.posting import DeliveryFailed, Poster
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks.waiting import WaitingDelivery, postpone, settle, take_due

log = structlog.get_logger()

AT_ONCE: Final = 256
"""Deliveries that are read together."""
SETTLED_TOGETHER: Final = 64
"""So many come twice, and those that were under way, when a scheduler is killed."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""docs/reference/platform.md 11 (delivery)."""
LONGEST_WISH_S: Final = 3600.0
"""How long a receiver may have us wait with Retry-After."""

DELIVERIES: Final = counter(
    "resolute_webhook_deliveries_total",
    "Attempts to tell a webhook of an event: delivered, failed and tried again, or dropped",
    "outcome",
)


@dataclass
class _Round:
    """Deliveries that were read together, and what has become of them."""

    left: Iterator[WaitingDelivery]
    done: list[int] = field(default_factory=list)
    """Those that need no further attempt, and whose rows are still there."""
    failed: list[tuple[WaitingDelivery, DeliveryFailed]] = field(default_factory=list)
    was_taken: bool = False
    """Whether any of them needs no further attempt."""


class Receiver:
    """That of one webhook."""

    def __init__(
        self,
        webhook_id: int,
        *,
        db: Database,
        clock: Clock,
        poster: Poster,
        settings: WebhookSettings,
        base_url: str,
        signing_key: str,
    ) -> None:
        self._webhook_id = webhook_id
        self._db = db
        self._clock = clock
        self._poster = poster
        self._settings = settings
        self._base_url = base_url
        self._signing_key = signing_key
        self._failures = 0
        """Rounds in a row in which nothing was taken."""
        self._pause_until = 0.0

    @property
    def may_send(self) -> bool:
        return time.monotonic() >= self._pause_until

    async def work(self) -> None:
        """Send until nothing is due or the receiver needs a pause."""
        while self.may_send:
            most = 1 if self._failures else AT_ONCE
            async with self._db.read() as connection:
                deliveries = await take_due(connection, self._webhook_id, most=most)
            if not deliveries:
                return
            await self._round(deliveries)

    async def _round(self, deliveries: list[WaitingDelivery]) -> None:
        """Send some; once one fails no further one begins, and those that have not begun wait for the next round."""
        current = _Round(iter(deliveries))
        width = min(len(deliveries), self._settings.connections)
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(width):
                    tasks.create_task(self._send(current))
        finally:
            await self._settle(current)
        if current.failed and not current.was_taken:
            self._failures += 1
            wish = max((error.retry_after_s or 0.0 for _, error in current.failed), default=0.0)
            self._pause_until = time.monotonic() + max(pause_s(self._failures), min(wish, LONGEST_WISH_S))
        else:
            self._failures = 0

    async def _send(self, current: _Round) -> None:
        while not current.failed and (delivery := next(current.left, None)) is not None:
            body, headers = request_of(
                delivery.event,
                delivery.webhook_type,
                base_url=self._base_url,
                signing_key=self._signing_key,
                now_s=int(self._clock.now().timestamp()),
            )
            try:
                await self._poster.post(delivery.url, body, headers)
            except DeliveryFailed as error:
                if not error.is_final:
                    current.failed.append((delivery, error))
                    continue
                self._drop(delivery, str(error))
            else:
                DELIVERIES.labels("delivered").inc()
            current.done.append(delivery.id)
            current.was_taken = True
            if len(current.done) >= SETTLED_TOGETHER:
                await self._forget_done(current)

    async def _forget_done(self, current: _Round) -> None:
        """While the other connections to the receiver go on. What a lost database does not take is left for later: what
        was sent is not sent again for that."""
        together, current.done = current.done, []
        try:
            async with self._db.transaction() as connection:
                await settle(connection, together)
        except Exception as error:
            current.done += together
            if not is_connection_failure(error):
                raise

    async def _settle(self, current: _Round) -> None:
        given_up_before = self._clock.now() - timedelta(seconds=self._settings.kept_s)
        over = [(each, error) for each, error in current.failed if each.created_at < given_up_before]
        for delivery, error in over:
            self._drop(delivery, f"{error}, for {self._settings.kept_s:g} s")
        dropped = {delivery.id for delivery, _ in over}
        async with self._db.transaction() as connection:
            await settle(connection, {*current.done, *dropped})
            for delivery, error in current.failed:
                if delivery.id in dropped:
                    continue
                seconds = pause_s(delivery.attempts + 1)
                DELIVERIES.labels("failed").inc()
                log.info(
                    "webhook.failed",
                    webhook=self._webhook_id,
                    event_id=delivery.event.event_id,
                    attempts=delivery.attempts + 1,
                    reason=str(error),
                    retry_s=seconds,
                )
                await postpone(connection, delivery.id, seconds=seconds)

    def _drop(self, delivery: WaitingDelivery, reason: str) -> None:
        DELIVERIES.labels("dropped").inc()
        log.warning("webhook.dropped", webhook=self._webhook_id, event_id=delivery.event.event_id, reason=reason)


def pause_s(failures: int) -> float:
    """Seconds after so many failures in a row."""
    return float(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 10)))
