from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from libs.clock import SystemClock
from libs.cluster.config import WebhooksConfig
from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.relay import relay_outbox
from libs.db.tables.webhooks import webhook_deliveries, webhook_triggers, webhooks
from libs.events.changes import ExperimentChanged, PublicEvent
from libs.ids import new_uuid
from libs.webhooks.deliveries import enqueue_deliveries
from libs.webhooks.events import NewDelivery, TriggerType, WebhookEvent
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks.bus_webhooks import BusWebhooks
from services.scheduler.webhooks.sender import WebhookSender
from tests.integration.scheduler.world import World, background

CONFIG = WebhooksConfig(signing_key="k", allowed_networks=("127.0.0.0/8",))


class Hooks:
    """Webhooks of a database, and what is sent to them."""

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def db(self) -> Database:
        return self.world.db

    async def add(
        self, url: str, *triggers: tuple[str, dict[str, Any]], webhook_type: str = "DEFAULT", **columns: Any
    ) -> int:
        """A webhook of every workspace; returns its id."""
        async with self.db.transaction() as connection:
            row = {"name": new_uuid(), "url": url, "webhook_type": webhook_type, **columns}
            made = insert(webhooks).values(row).returning(webhooks.c.id)
            ident: int = (await connection.execute(made)).scalar_one()
            for trigger_type, condition in triggers:
                trigger = {"webhook_id": ident, "trigger_type": trigger_type, "condition": condition}
                await connection.execute(insert(webhook_triggers).values(trigger))
        return ident

    async def enqueue(self, webhook_id: int, count: int = 1) -> list[str]:
        """So many events for a webhook; returns their ids."""
        events = [
            WebhookEvent(event_id=new_uuid(), event_type=TriggerType.CUSTOM, timestamp=1_700_000_000, test=True)
            for _ in range(count)
        ]
        async with self.db.transaction() as connection:
            await enqueue_deliveries(connection, [NewDelivery(webhook_id, event) for event in events])
        return [event.event_id for event in events]

    async def waiting(self) -> int:
        async with self.db.read() as connection:
            query = select(func.count()).select_from(webhook_deliveries)
            return int((await connection.execute(query)).scalar_one())

    async def announce(self, *events: PublicEvent) -> None:
        async with self.db.transaction() as connection:
            await announce(connection, *events)

    async def change(self, experiment: int, state: str) -> None:
        await self.announce(ExperimentChanged(experiment_id=experiment, what="state", state=state))

    @asynccontextmanager
    async def sending(self, *, config: WebhooksConfig = CONFIG, **settings: Any) -> AsyncIterator[None]:
        """A scheduler's part in it, and the relay of the outbox, while the block runs."""
        chosen = WebhookSettings(**{"look_s": 0.05, **settings})
        sender = WebhookSender(db=self.db, clock=SystemClock(), config=config, settings=chosen)
        listener = BusWebhooks(db=self.db, bus=self.world.bus, settings=chosen, news=sender.look_now)
        async with background(sender.run(), listener.run(), relay_outbox(self.db, self.world.bus)):
            yield


@pytest.fixture
def hooks(world: World) -> Hooks:
    return Hooks(world)
