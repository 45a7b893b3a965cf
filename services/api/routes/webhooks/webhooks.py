"""Webhooks of experiments and tasks (docs/reference/platform.md 11)."""

from __future__ import annotations

from typing import Any, Final

from libs.webhooks.addresses import Network, networks
from services.api.actions.webhooks import custom, testing
from services.api.actions.webhooks import webhooks as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.webhooks.webhooks import list_webhooks
from services.api.wire.base import Empty
from services.api.wire.webhooks.webhooks import (
    GetWebhooksResponse,
    PatchWebhook,
    PostWebhookEventDataRequest,
    PostWebhookResponse,
    TestWebhookResponse,
    Webhook,
)


async def list_(call: Call[App, None, None]) -> GetWebhooksResponse:
    async with call.app.db.read() as connection:
        return GetWebhooksResponse(webhooks=await list_webhooks(connection, call.rights))


async def create(call: Call[App, None, Webhook]) -> PostWebhookResponse:
    made = await actions.create_webhook(call.app.db, call.rights, call.body, allowed=allowed_networks(call))
    return PostWebhookResponse(webhook=made)


async def patch(call: Call[App, None, PatchWebhook]) -> Empty:
    webhook_id = call.path_int("id")
    allowed = allowed_networks(call)
    await actions.set_webhook_url(call.app.db, call.rights, webhook_id, call.body.url, allowed=allowed)
    return Empty()


async def delete(call: Call[App, None, None]) -> Empty:
    await actions.delete_webhook(call.app.db, call.rights, call.path_int("id"))
    return Empty()


async def test(call: Call[App, None, None]) -> TestWebhookResponse:
    await testing.send_test(
        call.app.db,
        call.app.clock,
        call.app.cluster.webhooks,
        call.rights,
        call.path_int("id"),
        cluster_id=call.app.cluster_id,
    )
    return TestWebhookResponse(completed=True)


async def tell(call: Call[App, None, PostWebhookEventDataRequest]) -> Empty:
    await custom.tell_webhooks(call.app.db, call.app.clock, call.body)
    return Empty()


def allowed_networks(call: Call[App, None, Any]) -> tuple[Network, ...]:
    return networks(call.app.cluster.webhooks.allowed_networks)


_ONE: Final = "/api/v1/webhooks/{id}"
_MOST_BYTES: Final = 1024 * 1024

ROUTES: Final = (
    Route(method="GET", path="/api/v1/webhooks", handler=list_, response=GetWebhooksResponse),
    Route(
        method="POST",
        path="/api/v1/webhooks",
        handler=create,
        body=Webhook,
        response=PostWebhookResponse,
        max_body_bytes=_MOST_BYTES,
    ),
    Route(
        method="POST",
        path="/api/v1/webhooks/custom",
        handler=tell,
        body=PostWebhookEventDataRequest,
        response=Empty,
        max_body_bytes=_MOST_BYTES,
    ),
    Route(method="PATCH", path=_ONE, handler=patch, body=PatchWebhook, response=Empty, max_body_bytes=_MOST_BYTES),
    Route(method="DELETE", path=_ONE, handler=delete, response=Empty),
    Route(method="POST", path=f"{_ONE}/test", handler=test, response=TestWebhookResponse),
)
