"""Workspaces and their projects. Written by the api; deletion is carried out by the scheduler."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)

from libs.db.tables.metadata import change_number, document, metadata, moment, serial_id

workspaces = Table(
    "workspaces",
    metadata,
    serial_id(),
    Column("name", Text, nullable=False),
    Column("owner_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    Column("immutable", Boolean, nullable=False, server_default=text("false")),
    # '' is the normal state; DELETING, DELETE_FAILED
    Column("state", Text, nullable=False, server_default=""),
    Column("error_message", Text, nullable=False, server_default=""),
    moment("created_at", default_now=True),
    Column("agent_uid", Integer),
    Column("agent_user", Text),
    Column("agent_gid", Integer),
    Column("agent_group", Text),
    document("checkpoint_storage"),
    Column("default_compute_pool", Text, nullable=False, server_default=""),
    Column("default_aux_pool", Text, nullable=False, server_default=""),
    # Name of the namespace that was made for it, in whatever cluster; stays the same from then on.
    Column("auto_created_namespace", Text),
    change_number(indexed=False),
)
Index("uq_workspaces_name_lower", func.lower(workspaces.c.name), unique=True)

workspace_pins = Table(
    "workspace_pins",
    metadata,
    Column("workspace_id", BigInteger, ForeignKey("workspaces.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    moment("pinned_at", default_now=True),
)

projects = Table(
    "projects",
    metadata,
    serial_id(),
    Column("workspace_id", BigInteger, ForeignKey("workspaces.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("key", Text, nullable=False, unique=True),
    Column("owner_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    Column("immutable", Boolean, nullable=False, server_default=text("false")),
    Column("state", Text, nullable=False, server_default=""),
    Column("error_message", Text, nullable=False, server_default=""),
    moment("created_at", default_now=True),
    document("notes", default="[]"),
    # Counter behind the local ids of runs, KEY-<n>.
    Column("max_local_id", Integer, nullable=False, server_default="0"),
    change_number(),
    UniqueConstraint("workspace_id", "name"),
)

# Every key that a project ever had, the present one included: an address that somebody wrote down never comes to mean
# another project.
project_keys = Table(
    "project_keys",
    metadata,
    Column("key", Text, primary_key=True),
    # NULL when the project is gone.
    Column("project_id", BigInteger, ForeignKey("projects.id", ondelete="SET NULL"), index=True),
)

# Pools that are for some workspaces only: where a pool is named here, others may not use it. A pool may have left the
# configuration; its rows count again when it is back.
pool_bindings = Table(
    "pool_bindings",
    metadata,
    Column("workspace_id", BigInteger, ForeignKey("workspaces.id", ondelete="CASCADE"), primary_key=True),
    Column("pool", Text, primary_key=True),
)
