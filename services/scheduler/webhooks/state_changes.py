"""Triggers of type EXPERIMENT_STATE_CHANGE: fire for every change to the state that they name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from libs.bus import Message
from libs.db.engine import Database
from libs.events.changes import ExperimentChanged
from libs.webhooks.events import NewDelivery, TriggerType, WebhookEvent, event_id
from libs.webhooks.experiments import KnownExperiment, load_experiments
from libs.webhooks.scope import hears
from services.scheduler.webhooks.message_ids import message_id
from services.scheduler.webhooks.triggers import StoredTrigger, load_triggers

_DECODER = msgspec.json.Decoder(ExperimentChanged)


async def deliveries_of_changes(db: Database, messages: Sequence[Message]) -> list[NewDelivery]:
    """What webhooks are told of these messages about the states of experiments."""
    triggers = await load_triggers(db, TriggerType.EXPERIMENT_STATE_CHANGE)
    states = {trigger.condition.get("state") for trigger in triggers}
    changes = [
        (message, change) for message in messages if (change := _change(message)) is not None and change.state in states
    ]
    if not changes:
        return []
    async with db.read() as connection:
        known = await load_experiments(connection, {change.experiment_id for _, change in changes})
    return [
        NewDelivery(trigger.webhook.id, _event(trigger, message, change, experiment))
        for message, change in changes
        if (experiment := known.get(change.experiment_id)) is not None
        for trigger in triggers
        if trigger.condition.get("state") == change.state
        and trigger.concerns(message)
        and hears(trigger.webhook, experiment.origin)
    ]


def _change(message: Message) -> ExperimentChanged | None:
    try:
        return _DECODER.decode(message.data)
    except msgspec.MsgspecError:
        return None  # of a newer release; the bus has counted it as handled


def _event(
    trigger: StoredTrigger, message: Message, change: ExperimentChanged, experiment: KnownExperiment
) -> WebhookEvent:
    at = message.stored_at or datetime.now(UTC)
    return WebhookEvent(
        event_id=event_id(message_id(message), trigger.id),
        event_type=TriggerType.EXPERIMENT_STATE_CHANGE,
        timestamp=int(at.timestamp()),
        condition={"state": change.state},
        experiment=experiment.facts(now=at, state=change.state),
    )
