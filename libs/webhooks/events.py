"""Events as they wait for their webhook: what happened, before it is put into the form that the webhook asks for."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from msgspec import Struct

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "resolute/webhooks")


class TriggerType(StrEnum):
    EXPERIMENT_STATE_CHANGE = "EXPERIMENT_STATE_CHANGE"
    METRIC_THRESHOLD_EXCEEDED = "METRIC_THRESHOLD_EXCEEDED"
    TASK_LOG = "TASK_LOG"
    CUSTOM = "CUSTOM"
    EVENT = "EVENT"
    """Of webhooks for public events; not a part of the compatible interface."""


class WebhookType(StrEnum):
    DEFAULT = "DEFAULT"
    SLACK = "SLACK"
    CLOUDEVENTS = "CLOUDEVENTS"
    """Gets public events; not a part of the compatible interface."""


class ExperimentFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: int
    state: str
    name: str
    duration: int
    """Seconds from its start to its end, or to the event."""
    resource_pool: str
    slots_per_trial: int
    workspace: str
    project: str
    trial_id: int | None = None


class TaskLogFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    task_id: str
    node_name: str
    triggering_log: str
    task_type: str = ""
    experiment_id: int | None = None
    trial_id: int | None = None


class CustomFacts(Struct, frozen=True, kw_only=True):
    title: str
    description: str
    level: str


class MetricFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    value: float
    steps_completed: int | None = None


class WebhookEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Only what belongs to ``event_type`` is set."""

    event_id: str
    event_type: str
    timestamp: int
    """Unix seconds."""
    condition: dict[str, Any] | None = None
    experiment: ExperimentFacts | None = None
    task_log: TaskLogFacts | None = None
    custom: CustomFacts | None = None
    metric: MetricFacts | None = None
    cloud_event: dict[str, Any] | None = None
    """The whole envelope."""
    test: bool = False


class Once(Struct, frozen=True, kw_only=True):
    """Of events of which a trigger makes one at most for each key, which names a task or a trial."""

    trigger_id: int
    key: str


class NewDelivery(Struct, frozen=True):
    """An event for a webhook. Two with the same pair of ids are one."""

    webhook_id: int
    event: WebhookEvent
    once: Once | None = None


def event_id(*parts: object) -> str:
    """The id of an event that is made from these; the same for the same, so that redelivery makes no second event."""
    return str(UUID(bytes=uuid5(_NAMESPACE, "/".join(map(str, parts))).bytes))
