"""Webhooks of experiments and tasks (docs/reference/platform.md 11)."""

from __future__ import annotations

from typing import Any, Final

from libs.outbound.addresses import Network, networks
from services.api.access.rights.actions import Action
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

MOST_BYTES: Final = 1024 * 1024


async def list_(call: Call[App, None, None]) -> GetWebhooksResponse:
    async with call.app.db.read() as connection:
        return GetWebhooksResponse(webhooks=await list_webhooks(connection, call.rights))


async def create(call: Call[App, None, Webhook]) -> PostWebhookResponse:
    made = await actions.create_webhook(call.app.db, call.rights, call.body, allowed=allowed_networks(call))
    return PostWebhookResponse(webhook=made)


async def tell(call: Call[App, None, PostWebhookEventDataRequest]) -> Empty:
    await custom.tell_webhooks(call.app.db, call.app.clock, call.body)
    return Empty()


def routes_of_one(path: str, *, action: Action | None = None, for_events: bool = False) -> tuple[Route, ...]:
    """Changing, deleting and testing one webhook.

    action  what the caller has to be allowed to do before anything is looked up
    """

    def check(call: Call[App, None, Any]) -> int:
        if action is not None:
            call.rights.require(action)
        return call.path_int("id")

    async def patch(call: Call[App, None, PatchWebhook]) -> Empty:
        ident, url = check(call), call.body.url
        allowed = allowed_networks(call)
        await actions.set_webhook_url(call.app.db, call.rights, ident, url, allowed=allowed, for_events=for_events)
        return Empty()

    async def delete(call: Call[App, None, None]) -> Empty:
        await actions.delete_webhook(call.app.db, call.rights, check(call), for_events=for_events)
        return Empty()

    async def test(call: Call[App, None, None]) -> TestWebhookResponse:
        await testing.send_test(
            call.app.db,
            call.app.clock,
            call.app.cluster.webhooks,
            call.rights,
            check(call),
            cluster_id=call.app.cluster_id,
            for_events=for_events,
        )
        return TestWebhookResponse(completed=True)

    return (
        Route(
            method="PATCH",
            path=path,
            handler=patch,
            body=PatchWebhook,
            response=Empty,
            max_body_bytes=MOST_BYTES,
            summary="Change the address of a webhook",
        ),
        Route(method="DELETE", path=path, handler=delete, response=Empty, summary="Delete a webhook"),
        Route(
            method="POST",
            path=f"{path}/test",
            handler=test,
            response=TestWebhookResponse,
            summary="Send a test event to a webhook",
        ),
    )


def allowed_networks(call: Call[App, None, Any]) -> tuple[Network, ...]:
    return networks(call.app.cluster.webhooks.allowed_networks)


ROUTES: Final = (
    Route(method="GET", path="/api/v1/webhooks", handler=list_, response=GetWebhooksResponse, summary="List webhooks"),
    Route(
        method="POST",
        path="/api/v1/webhooks",
        handler=create,
        body=Webhook,
        response=PostWebhookResponse,
        max_body_bytes=MOST_BYTES,
        summary="Create a webhook",
    ),
    Route(
        method="POST",
        path="/api/v1/webhooks/custom",
        handler=tell,
        body=PostWebhookEventDataRequest,
        response=Empty,
        max_body_bytes=MOST_BYTES,
        summary="Send a custom event to webhooks",
    ),
    *routes_of_one("/api/v1/webhooks/{id}"),
)
