"""Users, the sessions by which they, their tokens and their tasks are known, and groups of users with their roles.

Written by the api; task sessions by the scheduler. So is what a provider of identities says of users and groups (SCIM),
with the clients and tokens by which it is known.
Tokens are stored as SHA-256 digests only. Roles and their permissions are fixed, so they are no rows
(docs/reference/platform.md 5.3).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, func, text

from libs.db.tables.metadata import document, metadata, moment, serial_id

users = Table(
    "users",
    metadata,
    serial_id(),
    Column("username", Text, nullable=False, unique=True),
    # NULL is a blank password, '' is no password that could ever match (docs/reference/platform.md 2.1).
    Column("password_hash", Text),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("admin", Boolean, nullable=False, server_default=text("false")),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    Column("remote", Boolean, nullable=False, server_default=text("false")),
    moment("modified_at", default_now=True),
    moment("last_auth_at"),
    Column("agent_uid", Integer),
    Column("agent_user", Text),
    Column("agent_gid", Integer),
    Column("agent_group", Text),
)

user_sessions = Table(
    "user_sessions",
    metadata,
    serial_id(),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    # LOGIN (from a password), TASK (given to a task), ACCESS (det token create)
    Column("token_type", Text, nullable=False),
    moment("created_at", default_now=True),
    moment("expires_at"),
    moment("revoked_at"),
    Column("description", Text, nullable=False, server_default=""),
    # The allocation a TASK session was made for; the session ends with it.
    Column("allocation_id", Text, index=True),
)

allocation_sessions = Table(
    "allocation_sessions",
    metadata,
    serial_id(),
    Column("allocation_id", Text, nullable=False, index=True),
    Column("owner_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    moment("created_at", default_now=True),
    # Set when the allocation ends: refused by the api from then on, accepted by the log intake a while longer.
    moment("revoked_at"),
)

user_settings = Table(
    "user_settings",
    metadata,
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("storage_path", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

# When somebody last looked at what, which pages show as recent. Written by the api.
user_activity = Table(
    "user_activity",
    metadata,
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("project_id", BigInteger, ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True, index=True),
    moment("seen_at", default_now=True),
)

groups = Table(
    "groups",
    metadata,
    serial_id(),
    Column("name", Text, nullable=False, unique=True),
    # Of the group that stands for one user, to whom roles can be given as to any group; NULL for the others.
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), unique=True),
    # As a provider of identities calls it (SCIM).
    Column("external_id", Text),
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

# What a provider of identities says of a user: attributes of RFC 7643 for which ``users`` has no column.
scim_users = Table(
    "scim_users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("external_id", Text),
    # As given; users.display_name is blank where the name of somebody else, or letters that are not ASCII, forbid it.
    Column("display_name", Text, nullable=False, server_default=""),
    document("name", default="{}"),
    document("emails", default="[]"),
    moment("created_at", default_now=True),
)

oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # Where it may be sent codes.
    Column("domain", Text, nullable=False),
    Column("secret_hash", LargeBinary, nullable=False),
    moment("created_at", default_now=True),
)

oauth_tokens = Table(
    "oauth_tokens",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("client_id", Text, ForeignKey("oauth_clients.id", ondelete="CASCADE"), nullable=False, index=True),
    # CODE, ACCESS, REFRESH
    Column("kind", Text, nullable=False),
    # Of a code: it is given for a token with the same one only.
    Column("redirect_uri", Text, nullable=False, server_default=""),
    # NULL for those that end with their client.
    moment("expires_at"),
)
