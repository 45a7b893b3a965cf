"""Checks webhooks before they are stored (docs/reference/platform.md 11; docs/reference/logs.md 8). Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

import re2

from libs.config.parts.log_policies import QUIETLY
from libs.errors import InvalidRequest
from libs.outbound.addresses import Network
from libs.states.experiment import ExperimentState
from libs.webhooks.addresses import problem_of_url, refused_literal
from libs.webhooks.cloud_events import types_matching
from services.api.wire.webhooks.event_webhooks import EventWebhook
from services.api.wire.webhooks.webhooks import Trigger, TriggerType, Webhook, WebhookMode, WebhookType

MOST_TRIGGERS: Final = 100
LONGEST_NAME: Final = 256
LONGEST_URL: Final = 4096
LONGEST_PATTERN: Final = 1024
"""In characters."""


def check_webhook(webhook: Webhook, allowed: Sequence[Network]) -> None:
    """A webhook may come without a name. Raises InvalidRequest."""
    _check_length(webhook.name)
    check_url(webhook.url, allowed)
    if webhook.webhook_type is WebhookType.UNSPECIFIED:
        raise InvalidRequest("webhookType: must be WEBHOOK_TYPE_DEFAULT or WEBHOOK_TYPE_SLACK")
    if not webhook.triggers:
        raise InvalidRequest("at least one trigger required")
    if len(webhook.triggers) > MOST_TRIGGERS:
        raise InvalidRequest(f"triggers: must not be more than {MOST_TRIGGERS}")
    for trigger in webhook.triggers:
        _check_trigger(trigger, webhook.mode)


def check_event_webhook(webhook: EventWebhook, allowed: Sequence[Network]) -> None:
    """Raises InvalidRequest."""
    if not webhook.name.strip():
        raise InvalidRequest("name is required")
    _check_length(webhook.name)
    check_url(webhook.url, allowed)
    if not 0 < len(webhook.types) <= MOST_TRIGGERS:
        raise InvalidRequest(f"types: between 1 and {MOST_TRIGGERS} are required, such as resolute.v1.experiment.state")
    for pattern in webhook.types:
        if len(pattern) > LONGEST_PATTERN or not types_matching(pattern):
            raise InvalidRequest(f"types: no event is of type {pattern[:200]!r}; docs/asyncapi.yaml lists them")


def check_url(url: str, allowed: Sequence[Network]) -> None:
    """Raises InvalidRequest."""
    if len(url) > LONGEST_URL or problem_of_url(url) is not None:
        raise InvalidRequest("valid url required")
    if (address := refused_literal(url, allowed)) is not None:
        raise InvalidRequest(
            f"url: {address} is a private address; an administrator can allow it with webhooks.allowed_networks"
        )


def _check_length(name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"name: must not be longer than {LONGEST_NAME} characters")


def _check_trigger(trigger: Trigger, mode: WebhookMode) -> None:
    condition = trigger.condition or {}
    match trigger.trigger_type:
        case TriggerType.EXPERIMENT_STATE_CHANGE:
            _check_state(condition)
        case TriggerType.TASK_LOG:
            _check_regex(condition)
        case TriggerType.METRIC_THRESHOLD_EXCEEDED:
            _check_threshold(condition)
        case TriggerType.CUSTOM:
            if condition:
                raise InvalidRequest("webhook custom trigger must not have a condition")
            if mode is not WebhookMode.SPECIFIC:
                raise InvalidRequest("webhook custom trigger requires the mode WEBHOOK_MODE_SPECIFIC")
        case _:
            raise InvalidRequest("triggers: triggerType is required")


def _check_state(condition: dict[str, Any]) -> None:
    states = [state.value for state in ExperimentState]
    if list(condition) != ["state"] or condition["state"] not in states:
        raise InvalidRequest(
            "webhook experiment state change condition must be one key 'state' with one of " + ", ".join(states)
        )


def _check_regex(condition: dict[str, Any]) -> None:
    if len(condition) != 1:
        raise InvalidRequest(f"webhook task log condition must have one key got {_shown(condition)}")
    if "regex" not in condition:
        raise InvalidRequest(f"webhook task log condition must have key 'regex' got {_shown(condition)}")
    regex = condition["regex"]
    if not isinstance(regex, str):
        raise InvalidRequest(f"webhook task log condition must have key 'regex' as string got {_shown(condition)}")
    if not 0 < len(regex) <= LONGEST_PATTERN:
        raise InvalidRequest(f"webhook task log regex must have between 1 and {LONGEST_PATTERN} characters")
    try:
        re2.compile(regex, QUIETLY)
    except re2.error as error:
        words = error.args[0] if error.args else ""
        said = words.decode() if isinstance(words, bytes) else words
        raise InvalidRequest(f"webhook task log regex does not compile: {said}") from error


def _check_threshold(condition: dict[str, Any]) -> None:
    metric, threshold = condition.get("metric"), condition.get("threshold")
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool) and math.isfinite(threshold)
    if set(condition) != {"metric", "threshold"} or not isinstance(metric, str) or not metric or not is_number:
        raise InvalidRequest(
            "webhook metric threshold condition must have the keys 'metric', a name of a validation metric, and "
            f"'threshold', a number, got {_shown(condition)}"
        )


def _shown(condition: dict[str, Any]) -> str:
    return json.dumps(condition)[:200]
