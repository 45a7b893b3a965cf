"""Rows of which there is one per installation, and the outbox."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Integer, LargeBinary, Table, Text

from libs.db.tables.metadata import document, metadata, moment, serial_id

cluster = Table(
    "cluster",
    metadata,
    # Always 1.
    Column("id", Integer, primary_key=True),
    Column("cluster_id", Text, nullable=False),
    moment("created_at", default_now=True),
    # When the initial password of the built-in users was applied; that happens once.
    moment("initialised_at"),
)

# Messages that belong to a commit. A relay publishes them in the order of ids and deletes them.
outbox = Table(
    "outbox",
    metadata,
    serial_id(),
    Column("subject", Text, nullable=False),
    document("headers", default="{}"),
    Column("payload", LargeBinary, nullable=False),
    # When its transaction began.
    moment("created_at", default_now=True),
)

node_overrides = Table(
    "node_overrides",
    metadata,
    # Nodes an administrator has disabled (det agent disable).
    Column("node", Text, primary_key=True),
    Column("draining", Boolean, nullable=False),
)
