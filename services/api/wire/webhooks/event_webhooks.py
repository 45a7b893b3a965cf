"""REST shapes of webhooks for public events."""

from __future__ import annotations

from services.api.wire.base import Message


class EventWebhook(Message):
    """``types`` are types of events, as in ``resolute.v1.experiment.state``, in which ``*`` stands for anything."""

    id: int = 0
    name: str = ""
    url: str = ""
    types: list[str] = []


class GetEventWebhooksResponse(Message):
    webhooks: list[EventWebhook] = []


class EventWebhookResponse(Message, kw_only=True):
    webhook: EventWebhook
