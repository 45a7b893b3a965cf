"""Webhooks, what triggers them, and what they are still to be told (docs/reference/platform.md 11).

The api writes webhooks. Deliveries are written by whoever knows first: the api of custom events, the log writer of
lines, the scheduler of everything that is said on the bus; the scheduler sends and deletes them.
"""

from __future__ import annotations

from sqlalchemy import UUID, BigInteger, Column, ForeignKey, Index, Integer, Table, Text, func

from libs.db.tables.metadata import document, metadata, moment, serial_id

webhooks = Table(
    "webhooks",
    metadata,
    serial_id(),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    # DEFAULT, SLACK, and CLOUDEVENTS of those that get public events
    Column("webhook_type", Text, nullable=False),
    # WORKSPACE: of everything in the workspace; SPECIFIC: of the experiments that name it
    Column("mode", Text, nullable=False, server_default="WORKSPACE"),
    # NULL is every workspace.
    Column("workspace_id", BigInteger, ForeignKey("workspaces.id", ondelete="CASCADE"), index=True),
    # What happened before does not concern it.
    moment("created_at", default_now=True),
)
Index("uq_webhooks_name", webhooks.c.name, func.coalesce(webhooks.c.workspace_id, 0), unique=True)

webhook_triggers = Table(
    "webhook_triggers",
    metadata,
    serial_id(),
    Column("webhook_id", BigInteger, ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False, index=True),
    # EXPERIMENT_STATE_CHANGE, TASK_LOG, CUSTOM, METRIC_THRESHOLD_EXCEEDED, and EVENT for public events
    Column("trigger_type", Text, nullable=False, index=True),
    # {state}, {regex}, {metric, threshold} or {type}
    document("condition", default="{}"),
)

# Triggers that fire once for a task, or for a trial, and have.
webhook_fired_triggers = Table(
    "webhook_fired_triggers",
    metadata,
    Column("trigger_id", BigInteger, ForeignKey("webhook_triggers.id", ondelete="CASCADE"), primary_key=True),
    # The id of a task, or trial/<id>
    Column("key", Text, primary_key=True),
)

# What a webhook is still to be told. A row goes when the receiver has taken it, or will not any more.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    serial_id(),
    Column("webhook_id", BigInteger, ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("event_id", UUID(as_uuid=False), nullable=False),
    # libs/webhooks/events.py
    document("event", nullable=False),
    # Those that failed.
    Column("attempts", Integer, nullable=False, server_default="0"),
    moment("created_at", default_now=True),
    moment("next_at", default_now=True),
)
Index("uq_webhook_deliveries_event", webhook_deliveries.c.webhook_id, webhook_deliveries.c.event_id, unique=True)
Index("ix_webhook_deliveries_next", webhook_deliveries.c.webhook_id, webhook_deliveries.c.next_at)
