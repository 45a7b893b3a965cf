"""Templates: configurations that others start from. And config policies: what administrators fix or limit in
configurations. Both are written by the api."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, func, text

from libs.db.tables.metadata import document, metadata, moment, serial_id

templates = Table(
    "templates",
    metadata,
    Column("name", Text, primary_key=True),
    document("config", default="{}"),
    # Goes with its workspace.
    Column(
        "workspace_id",
        BigInteger,
        ForeignKey("workspaces.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
        server_default=text("1"),
    ),
)

config_policies = Table(
    "config_policies",
    metadata,
    serial_id(),
    # NULL is the whole cluster.
    Column("workspace_id", BigInteger, ForeignKey("workspaces.id", ondelete="CASCADE")),
    # EXPERIMENT, or NTSC for notebooks, TensorBoards, shells and commands
    Column("workload_type", Text, nullable=False),
    document("invariant_config"),
    document("constraints"),
    Column("updated_by", BigInteger, ForeignKey("users.id"), nullable=False),
    moment("updated_at", default_now=True),
)
Index(
    "uq_config_policies", func.coalesce(config_policies.c.workspace_id, 0), config_policies.c.workload_type, unique=True
)
