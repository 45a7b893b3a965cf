"""Deliveries that wait in the database, each until its receiver has taken it or it is given up.

They are written in the transaction of what they tell of, or with the acknowledgement of the bus; the scheduler sends
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.cluster import cluster
from libs.webhooks.events import NewDelivery, Once

# Locked, so that a webhook that is deleted meanwhile makes nobody's transaction fail: its events are left out.
_ENQUEUE: Final = text(
    """
    INSERT INTO webhook_deliveries (webhook_id, event_id, event)
    SELECT w.id, n.event_id, n.event
    FROM unnest(CAST(:webhooks AS bigint[]), CAST(:ids AS uuid[]), CAST(CAST(:events AS text[]) AS jsonb[]))
      WITH ORDINALITY AS n (webhook_id, event_id, event, position)
    JOIN webhooks w ON w.id = n.webhook_id
    ORDER BY n.position
    FOR KEY SHARE OF w
    ON CONFLICT (webhook_id, event_id) DO NOTHING
    """
)

_FIRE: Final = text(
    """
    INSERT INTO webhook_fired_triggers (trigger_id, key)
    SELECT t.id, n.key
    FROM unnest(CAST(:triggers AS bigint[]), CAST(:keys AS text[])) AS n (trigger_id, key)
    JOIN webhook_triggers t ON t.id = n.trigger_id
    ORDER BY t.id, n.key
    FOR KEY SHARE OF t
    ON CONFLICT DO NOTHING
    RETURNING trigger_id, key
    """
)


async def enqueue_deliveries(connection: AsyncConnection, deliveries: Sequence[NewDelivery]) -> None:
    """Add deliveries to the transaction of ``connection``; those that wait already are not added again, nor those of a
    trigger that fires once and has."""
    deliveries = await _first_of_each(connection, deliveries)
    if not deliveries:
        return
    await connection.execute(
        _ENQUEUE,
        {
            "webhooks": [each.webhook_id for each in deliveries],
            "ids": [each.event.event_id for each in deliveries],
            "events": [msgspec.json.encode(each.event).decode() for each in deliveries],
        },
    )


async def _first_of_each(connection: AsyncConnection, deliveries: Sequence[NewDelivery]) -> list[NewDelivery]:
    first: dict[Once, NewDelivery] = {}
    for each in deliveries:
        if each.once is not None:
            first.setdefault(each.once, each)
    fired: set[Once] = set()
    if first:
        wanted = {"triggers": [once.trigger_id for once in first], "keys": [once.key for once in first]}
        rows = await connection.execute(_FIRE, wanted)
        fired = {Once(trigger_id=row.trigger_id, key=row.key) for row in rows}
    return [each for each in deliveries if each.once is None or (each.once in fired and first[each.once] is each)]


async def load_signing_key(connection: AsyncConnection, configured: str) -> str:
    """The key of the configuration, or the one that the installation was made with."""
    if configured:
        return configured
    return str((await connection.execute(select(cluster.c.webhook_signing_key))).scalar_one())
