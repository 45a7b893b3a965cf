"""Webhooks that get public events, as CloudEvents. For administrators, as events are of everybody's objects."""

from __future__ import annotations

from typing import Final

from services.api.access.rights.actions import Action
from services.api.actions.webhooks import webhooks as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.webhooks.webhooks import list_event_webhooks
from services.api.routes.webhooks.webhooks import MOST_BYTES, allowed_networks, routes_of_one
from services.api.wire.webhooks.event_webhooks import EventWebhook, EventWebhookResponse, GetEventWebhooksResponse

_ACTION: Final = Action.EDIT_EVENT_WEBHOOKS


async def list_(call: Call[App, None, None]) -> GetEventWebhooksResponse:
    call.rights.require(_ACTION)
    async with call.app.db.read() as connection:
        return GetEventWebhooksResponse(webhooks=await list_event_webhooks(connection))


async def create(call: Call[App, None, EventWebhook]) -> EventWebhookResponse:
    call.rights.require(_ACTION)
    made = await actions.create_event_webhook(call.app.db, call.rights, call.body, allowed=allowed_networks(call))
    return EventWebhookResponse(webhook=made)


_ALL: Final = "/api/v1/resolute/event-webhooks"

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        handler=list_,
        response=GetEventWebhooksResponse,
        summary="List the webhooks for events",
    ),
    Route(
        method="POST",
        path=_ALL,
        handler=create,
        body=EventWebhook,
        response=EventWebhookResponse,
        max_body_bytes=MOST_BYTES,
        summary="Create a webhook for events",
    ),
    *routes_of_one(f"{_ALL}/{{id}}", action=_ACTION, for_events=True),
)
