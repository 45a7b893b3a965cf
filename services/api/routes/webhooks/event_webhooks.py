"""Webhooks that get public events, as CloudEvents. For administrators, as events are of everybody's objects."""

from __future__ import annotations

from typing import Final

from services.api.access.rights.actions import Action
from services.api.actions.webhooks import testing
from services.api.actions.webhooks import webhooks as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.webhooks.webhooks import list_event_webhooks
from services.api.routes.webhooks.webhooks import allowed_networks
from services.api.wire.base import Empty
from services.api.wire.webhooks.event_webhooks import EventWebhook, EventWebhookResponse, GetEventWebhooksResponse
from services.api.wire.webhooks.webhooks import PatchWebhook, TestWebhookResponse

_ACTION: Final = Action.EDIT_EVENT_WEBHOOKS


async def list_(call: Call[App, None, None]) -> GetEventWebhooksResponse:
    call.rights.require(_ACTION)
    async with call.app.db.read() as connection:
        return GetEventWebhooksResponse(webhooks=await list_event_webhooks(connection))


async def create(call: Call[App, None, EventWebhook]) -> EventWebhookResponse:
    call.rights.require(_ACTION)
    made = await actions.create_event_webhook(call.app.db, call.rights, call.body, allowed=allowed_networks(call))
    return EventWebhookResponse(webhook=made)


async def patch(call: Call[App, None, PatchWebhook]) -> Empty:
    call.rights.require(_ACTION)
    await actions.set_webhook_url(
        call.app.db,
        call.rights,
        call.path_int("id"),
        call.body.url,
        allowed=allowed_networks(call),
        for_events=True,
    )
    return Empty()


async def delete(call: Call[App, None, None]) -> Empty:
    call.rights.require(_ACTION)
    await actions.delete_webhook(call.app.db, call.rights, call.path_int("id"), for_events=True)
    return Empty()


async def test(call: Call[App, None, None]) -> TestWebhookResponse:
    call.rights.require(_ACTION)
    await testing.send_test(
        call.app.db,
        call.app.clock,
        call.app.cluster.webhooks,
        call.rights,
        call.path_int("id"),
        cluster_id=call.app.cluster_id,
        for_events=True,
    )
    return TestWebhookResponse(completed=True)


_ALL: Final = "/api/v1/resolute/event-webhooks"
_ONE: Final = f"{_ALL}/{{id}}"
_MOST_BYTES: Final = 1024 * 1024

ROUTES: Final = (
    Route(method="GET", path=_ALL, handler=list_, response=GetEventWebhooksResponse),
    Route(
        method="POST",
        path=_ALL,
        handler=create,
        body=EventWebhook,
        response=EventWebhookResponse,
        max_body_bytes=_MOST_BYTES,
    ),
    Route(method="PATCH", path=_ONE, handler=patch, body=PatchWebhook, response=Empty, max_body_bytes=_MOST_BYTES),
    Route(method="DELETE", path=_ONE, handler=delete, response=Empty),
    Route(method="POST", path=f"{_ONE}/test", handler=test, response=TestWebhookResponse),
)
