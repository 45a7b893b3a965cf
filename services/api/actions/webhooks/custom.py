"""Custom events: an experiment tells the webhooks that it names (docs/reference/platform.md 11)."""

from __future__ import annotations

from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.clock import Clock
from libs.db.engine import Database
from libs.db.tables.trials import trials
from libs.db.tables.webhooks import webhook_triggers, webhooks
from libs.errors import InvalidRequest, NotFound
from libs.ids import new_uuid
from libs.webhooks.deliveries import enqueue_deliveries
from libs.webhooks.events import CustomFacts, NewDelivery, TriggerType, WebhookEvent
from libs.webhooks.experiments import KnownExperiment, load_experiments
from libs.webhooks.scope import WebhookScope, hears, is_named
from services.api.wire.log_level import LogLevel
from services.api.wire.webhooks.webhooks import PostWebhookEventDataRequest

_LEVEL: Final = "LOG_LEVEL_"


async def tell_webhooks(db: Database, clock: Clock, request: PostWebhookEventDataRequest) -> None:
    """Without effect when the experiment names none. Raises InvalidRequest, NotFound."""
    if request.data is None:
        raise InvalidRequest("data is required")
    level = LogLevel.INFO if request.data.level is LogLevel.UNSPECIFIED else request.data.level
    custom = CustomFacts(
        title=request.data.title, description=request.data.description, level=level.removeprefix(_LEVEL)
    )
    now = clock.now()
    async with db.transaction() as connection:
        experiment = (await load_experiments(connection, [request.experiment_id])).get(request.experiment_id)
        if experiment is None:
            raise NotFound("experiment", request.experiment_id)
        if request.trial_id:
            owner = await connection.scalar(select(trials.c.experiment_id).where(trials.c.id == request.trial_id))
            if owner != experiment.id:
                raise NotFound("trial", request.trial_id)
        facts = experiment.facts(now=now, trial_id=request.trial_id or None)
        deliveries = [
            NewDelivery(
                webhook.id,
                WebhookEvent(
                    event_id=new_uuid(),
                    event_type=TriggerType.CUSTOM,
                    timestamp=int(now.timestamp()),
                    experiment=facts,
                    custom=custom,
                ),
            )
            for webhook in await _with_custom_triggers(connection)
            if _is_told(webhook, experiment)
        ]
        await enqueue_deliveries(connection, deliveries)


def _is_told(webhook: WebhookScope, experiment: KnownExperiment) -> bool:
    return hears(webhook, experiment.origin) and is_named(webhook, experiment.origin)


async def _with_custom_triggers(connection: AsyncConnection) -> list[WebhookScope]:
    query = (
        select(webhooks.c.id, webhooks.c.name, webhooks.c.mode, webhooks.c.workspace_id)
        .join(webhook_triggers, webhook_triggers.c.webhook_id == webhooks.c.id)
        .where(webhook_triggers.c.trigger_type == TriggerType.CUSTOM)
        .distinct()
        .order_by(webhooks.c.id)
    )
    return [WebhookScope(**row._mapping) for row in await connection.execute(query)]
