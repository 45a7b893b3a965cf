"""Rows of which there is one per installation, its history, the outbox, and limits of what is held."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
)

from libs.db.tables.metadata import document, metadata, moment, serial_id

cluster = Table(
    "cluster",
    metadata,
    # Always 1.
    Column("id", Integer, primary_key=True),
    Column("cluster_id", Text, nullable=False),
    # What proxy tokens are proven with (libs/tasks/proxy_tokens.py); made with the row, and never shown.
    Column("proxy_secret", LargeBinary, nullable=False),
    # What requests to webhooks are signed with where the configuration names no key; made with the row.
    Column("webhook_signing_key", Text, nullable=False),
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

# Times in which nothing runs on the nodes of a pool, or on named nodes: then the pool is ''.
maintenance_windows = Table(
    "maintenance_windows",
    metadata,
    serial_id(),
    Column("pool", Text, nullable=False, server_default=""),
    document("nodes", default="[]"),
    moment("starts_at", nullable=False),
    moment("ends_at", nullable=False),
    Column("message", Text, nullable=False, server_default=""),
    moment("created_at", default_now=True),
)

# What administrators say to everybody. There is at most one row.
cluster_message = Table(
    "cluster_message",
    metadata,
    # Always 1.
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("message", Text, nullable=False),
    moment("start_time", nullable=False),
    # NULL: until somebody takes it away.
    moment("end_time"),
    moment("created_at", default_now=True),
    Column("created_by", BigInteger, ForeignKey("users.id"), nullable=False),
)

# Who changed what through the api, as long as the scheduler keeps it; each with the change itself in one transaction.
audit_records = Table(
    "audit_records",
    metadata,
    serial_id(),
    moment("recorded_at", default_now=True),
    # No reference: it outlives the user. NULL for a login that the name alone tells.
    Column("user_id", BigInteger),
    Column("username", Text, nullable=False),
    # Of the task whose token was used, if it was one.
    Column("allocation_id", Text),
    Column("address", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    # Method and path of the route: PATCH /api/v1/users/{userId}
    Column("action", Text, nullable=False),
    # Name of a parameter of the path -> its value.
    document("target", default="{}"),
    # What was asked for, without anything that might be secret.
    document("details", default="{}"),
    # List of {entity, id, what}: the events of the same transaction.
    document("changed", default="[]"),
)
Index("ix_audit_records_recorded_at", audit_records.c.recorded_at)

# Slot seconds of each day in UTC by user, pool and label, and of type queued the seconds that allocations waited on the
# average. Summed up by the scheduler when a day is over; those of an old installation come from ``resolute import``.
usage_days = Table(
    "usage_days",
    metadata,
    Column("day", Date, primary_key=True),
    # total, username, experiment_label, resource_pool, queued; imported ones may be of other types too
    Column("aggregation_type", Text, primary_key=True),
    Column("aggregation_key", Text, primary_key=True),
    Column("seconds", Float, nullable=False),
)

# Installations that were imported, and how far each table of theirs is: what an import that was cut off goes on from.
imports = Table(
    "imports",
    metadata,
    # Cluster id of the old installation.
    Column("source", Text, primary_key=True),
    moment("started_at", default_now=True),
    # When the last table was complete.
    moment("finished_at"),
)

import_progress = Table(
    "import_progress",
    metadata,
    Column("source", Text, ForeignKey("imports.source", ondelete="CASCADE"), primary_key=True),
    # As in the report.
    Column("kind", Text, primary_key=True),
    # Everything up to this key is copied.
    Column("last_key", Text),
    Column("imported", BigInteger, nullable=False, server_default="0"),
    # What the other columns say is known from here on.
    moment("finished_at"),
    Column("in_source", BigInteger),
    # Reason -> rows that were left out.
    document("skipped", default="{}"),
    Column("in_target", BigInteger),
)

# Rows that were imported, with hashes over their imported columns: a repeated import tells by them which side has
# changed. Written by ``resolute import``; metrics and log lines follow their trials and tasks, and have none.
import_rows = Table(
    "import_rows",
    metadata,
    # As in the report.
    Column("kind", Text, primary_key=True),
    # Text of the row's identity.
    Column("key", Text, primary_key=True),
    # As it came; NULL for what the import itself has made, such as trials that a search was about to ask for.
    Column("source_hash", Uuid),
    # As the import has left it here.
    Column("target_hash", Uuid, nullable=False),
)

# What users, groups and workspaces may hold. The api writes it, the scheduler reads it for each plan.
resource_limits = Table(
    "resource_limits",
    metadata,
    serial_id(),
    # user, group or workspace
    Column("scope", Text, nullable=False),
    # Id of the user, group or workspace; 0 is each that has no such limit of its own. It refers to nothing, so that
    # making the table locks nothing: limits of what has been deleted concern nobody.
    Column("subject_id", BigInteger, nullable=False),
    # '' is all pools together.
    Column("pool", Text, nullable=False),
    # '' is slots at once.
    Column("period", Text, nullable=False),
    Column("amount", Float, nullable=False),
    # Whether those leave that hold more; else nothing new starts.
    Column("preempts", Boolean, nullable=False),
    Column("set_by", BigInteger, nullable=False),
    moment("set_at", nullable=False),
)
Index(
    "uq_resource_limits",
    resource_limits.c.scope,
    resource_limits.c.subject_id,
    resource_limits.c.pool,
    resource_limits.c.period,
    unique=True,
)

# What users, groups and workspaces weigh under fair share, where it is not 1. As above, it refers to nothing.
share_weights = Table(
    "share_weights",
    metadata,
    serial_id(),
    # user, group or workspace
    Column("scope", Text, nullable=False),
    Column("subject_id", BigInteger, nullable=False),
    Column("weight", Float, nullable=False),
    Column("set_by", BigInteger, nullable=False),
    moment("set_at", nullable=False),
)
Index("uq_share_weights", share_weights.c.scope, share_weights.c.subject_id, unique=True)
