"""The model registry: models, and their versions, each a checkpoint with a number; written by the api
(docs/reference/platform.md 10)."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, text

from libs.db.tables.metadata import change_number, document, metadata, moment, serial_id
from libs.natural_order.sql import natural

models = Table(
    "models",
    metadata,
    serial_id(),
    Column("name", Text, nullable=False, unique=True),
    Column("description", Text, nullable=False, server_default=""),
    Column("notes", Text, nullable=False, server_default=""),
    document("metadata", default="{}"),
    document("labels", default="[]"),
    Column("owner_id", BigInteger, ForeignKey("users.id"), nullable=False),
    # A workspace with models cannot be deleted.
    Column("workspace_id", BigInteger, ForeignKey("workspaces.id"), nullable=False, index=True),
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    moment("created_at", default_now=True),
    moment("updated_at", default_now=True),
    change_number(),
)
Index("ix_models_natural_order", natural(models.c.name), models.c.id)

model_versions = Table(
    "model_versions",
    metadata,
    serial_id(),
    Column("model_id", BigInteger, ForeignKey("models.id", ondelete="CASCADE"), nullable=False),
    # 1, 2, 3 within the model.
    Column("version", Integer, nullable=False),
    # No reference: what another installation has lost is imported without it. The rows of those that are registered
    # here stay.
    Column("checkpoint_uuid", Text, nullable=False, index=True),
    Column("name", Text, nullable=False, server_default=""),
    Column("comment", Text, nullable=False, server_default=""),
    Column("notes", Text, nullable=False, server_default=""),
    document("metadata", default="{}"),
    document("labels", default="[]"),
    Column("owner_id", BigInteger, ForeignKey("users.id")),
    moment("created_at", default_now=True),
    moment("updated_at", default_now=True),
    change_number(),
    UniqueConstraint("model_id", "version"),
)
