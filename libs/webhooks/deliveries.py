"""Deliveries that wait in the database, each until its receiver has taken it or it is given up.

They are written in the transaction of what they tell of, or with the acknowledgement of the bus; the scheduler sends
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from libs.db.prepared.statements import Connection, PreparedStatement, as_document
from libs.webhooks.events import NewDelivery, Once

# Locked, so that a webhook that is deleted meanwhile makes nobody's transaction fail: its events are left out.
_ENQUEUE: Final = PreparedStatement("""
    INSERT INTO webhook_deliveries (webhook_id, event_id, event)
    SELECT w.id, n.event_id, n.event::jsonb
    FROM unnest(:webhooks::bigint[], :ids::uuid[], :events::text[])
      WITH ORDINALITY AS n (webhook_id, event_id, event, position)
    JOIN webhooks w ON w.id = n.webhook_id
    ORDER BY n.position
    FOR KEY SHARE OF w
    ON CONFLICT (webhook_id, event_id) DO NOTHING
""")

_FIRE: Final = PreparedStatement("""
    INSERT INTO webhook_fired_triggers (trigger_id, key)
    SELECT t.id, n.key
    FROM unnest(:triggers::bigint[], :keys::text[]) AS n (trigger_id, key)
    JOIN webhook_triggers t ON t.id = n.trigger_id
    ORDER BY t.id, n.key
    FOR KEY SHARE OF t
    ON CONFLICT DO NOTHING
    RETURNING trigger_id, key
""")
_SIGNING_KEY: Final = PreparedStatement("SELECT webhook_signing_key FROM cluster")


async def enqueue_deliveries(connection: Connection, deliveries: Sequence[NewDelivery]) -> None:
    """Add deliveries to the transaction of ``connection``; those that wait already are not added again, nor those of a
    trigger that fires once and has."""
    deliveries = await _first_of_each(connection, deliveries)
    if not deliveries:
        return
    await _ENQUEUE.rows(
        connection,
        webhooks=[each.webhook_id for each in deliveries],
        ids=[each.event.event_id for each in deliveries],
        events=[as_document(each.event) for each in deliveries],
    )


async def _first_of_each(connection: Connection, deliveries: Sequence[NewDelivery]) -> list[NewDelivery]:
    first: dict[Once, NewDelivery] = {}
    for each in deliveries:
        if each.once is not None:
            first.setdefault(each.once, each)
    fired: set[Once] = set()
    if first:
        rows = await _FIRE.rows(
            connection, triggers=[once.trigger_id for once in first], keys=[once.key for once in first]
        )
        fired = {Once(trigger_id=row["trigger_id"], key=row["key"]) for row in rows}
    return [each for each in deliveries if each.once is None or (each.once in fired and first[each.once] is each)]


async def load_signing_key(connection: Connection, configured: str) -> str:
    """The key of the configuration, or the one that the installation was made with."""
    if configured:
        return configured
    (row,) = await _SIGNING_KEY.rows(connection)
    return str(row["webhook_signing_key"])
