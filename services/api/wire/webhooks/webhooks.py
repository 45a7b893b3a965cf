"""REST shapes of webhooks (docs/reference/platform.md 11)."""

from __future__ import annotations

from typing import Any

from services.api.wire.base import Message, WireEnum
from services.api.wire.log_level import LogLevel


class WebhookType(WireEnum):
    UNSPECIFIED = "WEBHOOK_TYPE_UNSPECIFIED", 0
    DEFAULT = "WEBHOOK_TYPE_DEFAULT", 1
    SLACK = "WEBHOOK_TYPE_SLACK", 2


class WebhookMode(WireEnum):
    UNSPECIFIED = "WEBHOOK_MODE_UNSPECIFIED", 0
    WORKSPACE = "WEBHOOK_MODE_WORKSPACE", 1
    SPECIFIC = "WEBHOOK_MODE_SPECIFIC", 2


class TriggerType(WireEnum):
    UNSPECIFIED = "TRIGGER_TYPE_UNSPECIFIED", 0
    EXPERIMENT_STATE_CHANGE = "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", 1
    METRIC_THRESHOLD_EXCEEDED = "TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED", 2
    TASK_LOG = "TRIGGER_TYPE_TASK_LOG", 3
    CUSTOM = "TRIGGER_TYPE_CUSTOM", 4


class Trigger(Message):
    """``id`` and ``webhook_id`` count in replies only."""

    id: int = 0
    trigger_type: TriggerType = TriggerType.UNSPECIFIED
    condition: dict[str, Any] | None = None
    webhook_id: int = 0


class Webhook(Message):
    """``id`` counts in replies only; ``workspace_id`` 0 is every workspace."""

    id: int = 0
    url: str = ""
    triggers: list[Trigger] = []
    webhook_type: WebhookType = WebhookType.UNSPECIFIED
    name: str = ""
    workspace_id: int = 0
    mode: WebhookMode = WebhookMode.UNSPECIFIED


class GetWebhooksResponse(Message):
    webhooks: list[Webhook] = []


class PostWebhookResponse(Message, kw_only=True):
    webhook: Webhook


class PatchWebhook(Message):
    url: str = ""


class TestWebhookResponse(Message, kw_only=True):
    completed: bool


class CustomWebhookEventData(Message):
    title: str = ""
    description: str = ""
    level: LogLevel = LogLevel.UNSPECIFIED


class PostWebhookEventDataRequest(Message):
    data: CustomWebhookEventData | None = None
    experiment_id: int = 0
    trial_id: int | None = None
