"""Users with the hashes of their passwords, groups, roles, and what a provider of identities knows of them.

The hash is bcrypt over what clients send, here as there, so everybody logs in as before (docs/reference/platform.md
2.1).
"""

from __future__ import annotations

from typing import Final

from deploy.determined_import.kinds.copied import CopiedTable
from libs.db.tables.users import (
    group_members,
    groups,
    oauth_clients,
    role_assignments,
    scim_users,
    user_settings,
    users,
)

USERS: Final = CopiedTable(
    kind="users",
    target=users,
    rows="users u",
    joins="LEFT JOIN agent_user_groups a ON a.user_id = u.id",
    key="u.id",
    columns={
        "id": "u.id",
        "username": "u.username",
        "password_hash": "u.password_hash",
        "display_name": "coalesce(u.display_name, '')",
        "admin": "coalesce(u.admin, false)",
        "active": "coalesce(u.active, false)",
        "remote": "u.remote",
        "modified_at": "coalesce(u.modified_at, 'epoch')",
        "last_auth_at": "u.last_auth_at",
        "agent_uid": "a.uid",
        "agent_user": "a.user_",
        "agent_gid": "a.gid",
        "agent_group": "a.group_",
    },
    before=(
        "UPDATE users SET username = 'built-in ' || id",
        # Or else the first start of an api would give the built-in users the initial password.
        "UPDATE cluster SET initialised_at = coalesce(initialised_at, now())",
    ),
    replaces="id",
    counters=("last_auth_at",),
)

SETTINGS: Final = CopiedTable(
    kind="user settings",
    target=user_settings,
    rows="user_web_settings s",
    key="s.user_id",
    columns={
        "user_id": "s.user_id",
        "storage_path": "s.storage_path",
        "key": "s.key",
        # A JSON document here, and text that clients read as JSON there.
        "value": "s.value::text",
    },
    skipped={"without a value": "s.value IS NULL"},
)

GROUPS: Final = CopiedTable(
    kind="groups",
    target=groups,
    rows="groups g",
    key="g.id",
    columns={"id": "g.id", "name": "g.group_name", "user_id": "g.user_id"},
    # Those of the built-in users, with the role that a new installation begins with.
    before=("DELETE FROM groups",),
)

MEMBERS: Final = CopiedTable(
    kind="group members",
    target=group_members,
    rows="user_group_membership m",
    key="m.group_id",
    columns={"group_id": "m.group_id", "user_id": "m.user_id"},
)

ROLES: Final = CopiedTable(
    kind="role assignments",
    target=role_assignments,
    rows="role_assignments a",
    joins="LEFT JOIN role_assignment_scopes s ON s.id = a.scope_id",
    key="a.group_id",
    columns={"group_id": "a.group_id", "role_id": "a.role_id", "workspace_id": "s.scope_workspace_id"},
    identity=("group_id", "role_id", "workspace_id"),
    skipped={"without a group, role or scope": "a.group_id IS NULL OR a.role_id IS NULL OR a.scope_id IS NULL"},
)

PROVISIONED: Final = CopiedTable(
    kind="users of SCIM",
    target=scim_users,
    rows="scim.users s",
    joins="JOIN users u ON u.id = s.user_id",
    key="s.user_id",
    columns={
        "id": "s.id::text",
        "user_id": "s.user_id",
        "external_id": "nullif(s.external_id, '')",
        "display_name": "coalesce(u.display_name, '')",
        "name": "CASE WHEN jsonb_typeof(s.name) = 'object' THEN s.name ELSE '{}' END",
        "emails": "CASE WHEN jsonb_typeof(s.emails) = 'array' THEN s.emails ELSE '[]' END",
    },
)

OAUTH_CLIENTS: Final = CopiedTable(
    kind="OAuth clients",
    target=oauth_clients,
    rows="oauth.clients c",
    key="c.id",
    key_type="text",
    columns={
        "id": "c.id",
        "name": "c.name",
        "domain": "c.domain",
        # Which is kept as it is there, and as a digest here.
        "secret_hash": "sha256(convert_to(c.secret, 'UTF8'))",
    },
)
