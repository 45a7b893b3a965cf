"""Sends a test to a webhook while its user waits (docs/reference/platform.md 11)."""

from __future__ import annotations

from typing import Final

from libs.clock import Clock
from libs.cluster.config import WebhooksConfig
from libs.db.engine import Database
from libs.errors import InvalidRequest, NotFound
from libs.ids import new_uuid
from libs.outbound.addresses import networks
from libs.webhooks.bodies import request_of
from libs.webhooks.cloud_events import envelope
from libs.webhooks.deliveries import load_signing_key
from libs.webhooks.events import TriggerType, WebhookEvent, WebhookType
from libs.webhooks.posting import DeliveryFailed, open_poster
from services.api.access.rights.rights import UserRights
from services.api.actions.webhooks.rights import require_webhook_edit
from services.api.queries.webhooks.webhooks import webhook_row

TIMEOUT_S: Final = 10.0
TEST_TYPE: Final = "resolute.v1.webhook.test"


async def send_test(
    db: Database,
    clock: Clock,
    config: WebhooksConfig,
    rights: UserRights,
    webhook_id: int,
    *,
    cluster_id: str,
    for_events: bool = False,
) -> None:
    """Returns when the receiver has taken it. Raises NotFound, PermissionDenied, InvalidRequest with the reason."""
    async with db.read() as connection:
        row = await webhook_row(connection, webhook_id, rights, for_events=for_events)
        if row is None:
            raise NotFound("webhook", webhook_id)
        await require_webhook_edit(connection, rights, row["workspace_id"])
        key = await load_signing_key(connection, config.signing_key)
    now, ident = clock.now(), new_uuid()
    event = WebhookEvent(
        event_id=ident, event_type=TriggerType.EXPERIMENT_STATE_CHANGE, timestamp=int(now.timestamp()), test=True
    )
    if row["webhook_type"] == WebhookType.CLOUDEVENTS:
        cloud_event = envelope(
            id=ident,
            type=TEST_TYPE,
            subject=str(webhook_id),
            source=f"/resolute/{cluster_id}",
            at=now,
            data={"data": "test"},
        )
        event = WebhookEvent(
            event_id=ident, event_type=TriggerType.EVENT, timestamp=event.timestamp, cloud_event=cloud_event
        )
    body, headers = request_of(
        event, row["webhook_type"], base_url=config.base_url, signing_key=key, now_s=int(now.timestamp())
    )
    async with open_poster(allowed=networks(config.allowed_networks), timeout_s=TIMEOUT_S) as poster:
        try:
            await poster.post(row["url"], body, headers)
        except DeliveryFailed as error:
            raise InvalidRequest(f"webhook {webhook_id} did not take the test: {error}") from error
