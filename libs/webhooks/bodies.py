"""Bodies of webhook requests, by the type of the webhook. Pure. Source: docs/reference/platform.md 11."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from libs.webhooks.events import TriggerType, WebhookEvent, WebhookType
from libs.webhooks.signatures import signature_headers
from libs.webhooks.slack import slack_body

JSON: Final = "application/json; charset=UTF-8"
CLOUD_EVENT: Final = "application/cloudevents+json; charset=UTF-8"


def request_of(
    event: WebhookEvent, webhook_type: str, *, base_url: str, signing_key: str, now_s: int
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of the request that tells a webhook of an event. Those for Slack are not signed.

    The body is the same for each attempt; ``now_s`` is when it is sent.
    """
    if webhook_type == WebhookType.SLACK:
        return msgspec.json.encode(slack_body(event, base_url=base_url)), {"Content-Type": JSON}
    if webhook_type == WebhookType.CLOUDEVENTS:
        body, content_type = msgspec.json.encode(event.cloud_event), CLOUD_EVENT
    else:
        body, content_type = msgspec.json.encode(default_body(event)), JSON
    return body, {"Content-Type": content_type, **signature_headers(body, key=signing_key, now_s=now_s)}


def default_body(event: WebhookEvent) -> dict[str, Any]:
    """Keys that do not apply to the event are absent."""
    body = {
        "event_id": event.event_id,
        "event_type": event.event_type,
        "timestamp": event.timestamp,
        "condition": event.condition,
        "event_data": _event_data(event),
    }
    return {key: value for key, value in body.items() if value is not None}


def _event_data(event: WebhookEvent) -> dict[str, Any]:
    if event.test:
        return {"data": "test"}
    data: dict[str, Any] = {}
    if event.experiment is not None:
        data["experiment"] = msgspec.to_builtins(event.experiment)
    if event.event_type == TriggerType.TASK_LOG and event.task_log is not None:
        line = event.task_log
        data["task_log"] = {
            "task_id": line.task_id,
            "node_name": line.node_name,
            "triggering_log": line.triggering_log,
        }
    if event.custom is not None:
        data["custom_data"] = msgspec.to_builtins(event.custom)
    if event.metric is not None:
        data["metric"] = msgspec.to_builtins(event.metric)
    return data
