"""Scope of a webhook: of which experiments and tasks it hears. Pure. Source: docs/reference/platform.md 11."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from libs.config.stored import part

WORKSPACE: Final = "WORKSPACE"
"""Mode of a webhook that hears of everything in its workspace."""
SPECIFIC: Final = "SPECIFIC"
"""Mode of a webhook that hears of the experiments that name it."""


class Integration(Struct, frozen=True, kw_only=True):
    """``integrations.webhooks`` of the configuration of an experiment."""

    exclude: bool = False
    webhook_id: tuple[int, ...] = ()
    webhook_name: tuple[str, ...] = ()


class WebhookScope(Struct, frozen=True, kw_only=True):
    """What of a webhook decides."""

    id: int
    name: str
    mode: Literal["WORKSPACE", "SPECIFIC"] = WORKSPACE
    workspace_id: int | None = None
    """None is every workspace."""


class EventOrigin(Struct, frozen=True, kw_only=True):
    """Where something happened."""

    workspace_id: int
    integration: Integration | None = None
    """What its experiment says; None for tasks of none."""


def integration_of(config: Mapping[str, Any]) -> Integration:
    """What a stored configuration says about webhooks."""
    said = part(part(config, "integrations"), "webhooks")
    try:
        return msgspec.convert({key: value for key, value in said.items() if value is not None}, Integration)
    except msgspec.ValidationError:
        return Integration()  # from before configurations were checked; it names nobody


def hears(webhook: WebhookScope, origin: EventOrigin) -> bool:
    """Whether the webhook is told of what happens there. Ids and names that nobody has are ignored."""
    integration = origin.integration
    if integration is not None and integration.exclude:
        return False
    if webhook.workspace_id not in (None, origin.workspace_id):
        return False
    return webhook.mode == WORKSPACE or is_named(webhook, origin)


def is_named(webhook: WebhookScope, origin: EventOrigin) -> bool:
    """Whether the experiment names the webhook."""
    integration = origin.integration
    return integration is not None and (
        webhook.id in integration.webhook_id or webhook.name in integration.webhook_name
    )
