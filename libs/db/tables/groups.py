"""Groups of users, and the roles that groups have; written by ``resolute import`` until there are endpoints for them.

Roles and their permissions are fixed, so they are no rows (docs/reference/platform.md 5.3).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, Text, func

from libs.db.tables.metadata import metadata, serial_id

groups = Table(
    "groups",
    metadata,
    serial_id(),
    Column("name", Text, nullable=False, unique=True),
    # Of the group that stands for one user, to whom roles can be given as to any group; NULL for the others.
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), unique=True),
)

group_members = Table(
    "group_members",
    metadata,
    Column("group_id", BigInteger, ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True),
)

role_assignments = Table(
    "role_assignments",
    metadata,
    serial_id(),
    Column("group_id", BigInteger, ForeignKey("groups.id", ondelete="CASCADE"), nullable=False),
    Column("role_id", Integer, nullable=False),
    # NULL is the whole cluster.
    Column("workspace_id", BigInteger, ForeignKey("workspaces.id", ondelete="CASCADE"), index=True),
)
Index(
    "uq_role_assignments",
    role_assignments.c.group_id,
    role_assignments.c.role_id,
    func.coalesce(role_assignments.c.workspace_id, 0),
    unique=True,
)
