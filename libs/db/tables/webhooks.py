"""Webhooks, and what triggers them; written by ``resolute import`` until there are endpoints for them
(docs/reference/platform.md 11)."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, func

from libs.db.tables.metadata import document, metadata, serial_id

webhooks = Table(
    "webhooks",
    metadata,
    serial_id(),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    # DEFAULT, SLACK
    Column("webhook_type", Text, nullable=False),
    # WORKSPACE: of everything in the workspace; SPECIFIC: of the experiments that name it
    Column("mode", Text, nullable=False, server_default="WORKSPACE"),
    # NULL is every workspace.
    Column("workspace_id", BigInteger, ForeignKey("workspaces.id", ondelete="CASCADE"), index=True),
)
Index("uq_webhooks_name", webhooks.c.name, func.coalesce(webhooks.c.workspace_id, 0), unique=True)

webhook_triggers = Table(
    "webhook_triggers",
    metadata,
    serial_id(),
    Column("webhook_id", BigInteger, ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False, index=True),
    # EXPERIMENT_STATE_CHANGE, TASK_LOG, CUSTOM, METRIC_THRESHOLD_EXCEEDED
    Column("trigger_type", Text, nullable=False),
    # {state} or {regex}
    document("condition", default="{}"),
)
