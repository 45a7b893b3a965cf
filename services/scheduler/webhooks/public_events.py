"""Webhooks that get public events, and triggers on metrics, which are in these events too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from libs.bus import Message
from libs.bus.headers import SUBJECT, TIME, event_attribute
from libs.db.engine import Database
from libs.events.changes import TrialChanged
from libs.events.subjects import event_source
from libs.webhooks import cloud_events
from libs.webhooks.events import MetricFacts, NewDelivery, Once, TriggerType, WebhookEvent, event_id
from libs.webhooks.experiments import KnownExperiment, load_experiments
from libs.webhooks.scope import hears
from services.scheduler.webhooks.message_ids import message_id
from services.scheduler.webhooks.triggers import StoredTrigger, load_triggers

METRICS: Final = "resolute.v1.trial.metrics"
_DECODER = msgspec.json.Decoder(TrialChanged)


class PublicEvents:
    """What the webhooks of an installation are told of the messages on its bus."""

    def __init__(self, cluster_id: str) -> None:
        self._source = event_source(cluster_id)

    async def deliveries(self, db: Database, messages: Sequence[Message]) -> list[NewDelivery]:
        triggers = await load_triggers(db, TriggerType.EVENT, TriggerType.METRIC_THRESHOLD_EXCEEDED)
        public = [
            (message, found) for message in messages if (found := cloud_events.type_of(message.subject)) is not None
        ]
        patterns: dict[int, list[StoredTrigger]] = {}
        for trigger in triggers:
            if trigger.trigger_type == TriggerType.EVENT:
                patterns.setdefault(trigger.webhook.id, []).append(trigger)
        told = [
            NewDelivery(webhook_id, self._event(message, event_type))
            for message, event_type in public
            for webhook_id, wanted in patterns.items()
            if any(
                cloud_events.matches(event_type, (str(each.condition.get("type")),)) and each.concerns(message)
                for each in wanted
            )
        ]
        thresholds = [each for each in triggers if each.trigger_type == TriggerType.METRIC_THRESHOLD_EXCEEDED]
        metrics = [message for message, event_type in public if event_type == METRICS] if thresholds else []
        return [*told, *(await _exceeded(db, metrics, thresholds))]

    def _event(self, message: Message, event_type: str) -> WebhookEvent:
        at = _time(message)
        ident = message_id(message)
        return WebhookEvent(
            event_id=event_id(ident),
            event_type=TriggerType.EVENT,
            timestamp=int(at.timestamp()),
            cloud_event=cloud_events.envelope(
                id=ident,
                type=event_type,
                subject=event_attribute(message.headers, SUBJECT) or message.subject.split(".")[3],
                source=self._source,
                at=at,
                data=_data(message),
            ),
        )


def _time(message: Message) -> datetime:
    """That of the event, as subscribers of the bus have it; of one that was published without, when it was stored."""
    time = event_attribute(message.headers, TIME)
    return datetime.fromisoformat(time) if time else message.stored_at or datetime.now(UTC)


def _data(message: Message) -> Any:
    try:
        return msgspec.json.decode(message.data)
    except msgspec.MsgspecError:
        return None


async def _exceeded(db: Database, messages: Sequence[Message], triggers: Sequence[StoredTrigger]) -> list[NewDelivery]:
    """Each trigger fires once for a trial."""
    reports = [(message, report) for message in messages if (report := _report(message)) is not None]
    over = [
        (message, report, trigger, value)
        for message, report in reports
        for trigger in triggers
        if trigger.concerns(message) and (value := _value_over(trigger, report)) is not None
    ]
    if not over:
        return []
    async with db.read() as connection:
        known = await load_experiments(connection, {report.experiment_id for _, report, _, _ in over})
    return [
        NewDelivery(
            trigger.webhook.id,
            _metric_event(trigger, message, report, experiment, value),
            Once(trigger_id=trigger.id, key=f"trial/{report.trial_id}"),
        )
        for message, report, trigger, value in over
        if (experiment := known.get(report.experiment_id)) is not None and hears(trigger.webhook, experiment.origin)
    ]


def _report(message: Message) -> TrialChanged | None:
    """A report that carries its values, as those of validations do."""
    try:
        event = _DECODER.decode(message.data)
    except msgspec.MsgspecError:
        return None  # of a newer release
    return event if event.metrics else None


def _value_over(trigger: StoredTrigger, report: TrialChanged) -> float | None:
    """The value of the metric that the trigger names, if it is larger than its threshold."""
    value = (report.metrics or {}).get(trigger.condition.get("metric", ""))
    threshold = trigger.condition.get("threshold")
    if isinstance(value, bool) or not isinstance(value, int | float) or not isinstance(threshold, int | float):
        return None
    return float(value) if math.isfinite(value) and value > threshold else None


def _metric_event(
    trigger: StoredTrigger, message: Message, report: TrialChanged, experiment: KnownExperiment, value: float
) -> WebhookEvent:
    at = message.stored_at or datetime.now(UTC)
    return WebhookEvent(
        event_id=event_id(message_id(message), trigger.id),
        event_type=TriggerType.METRIC_THRESHOLD_EXCEEDED,
        timestamp=int(at.timestamp()),
        condition=dict(trigger.condition),
        experiment=experiment.facts(now=at, trial_id=report.trial_id),
        metric=MetricFacts(name=str(trigger.condition["metric"]), value=value, steps_completed=report.steps_completed),
    )
