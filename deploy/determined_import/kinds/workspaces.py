"""Workspaces and projects, and what belongs to them: pins, namespaces, pools, templates, policies, webhooks."""

from __future__ import annotations

from typing import Final

from deploy.determined_import.kinds.copied import CopiedTable
from deploy.determined_import.kinds.rules import folder_state, json_object, json_object_or_null
from libs.db.tables.namespaces import auto_created_namespaces, workspace_namespace_bindings
from libs.db.tables.templates import config_policies, templates
from libs.db.tables.webhooks import webhook_triggers, webhooks
from libs.db.tables.workspaces import pool_bindings, project_keys, projects, workspace_pins, workspaces

WORKSPACES: Final = CopiedTable(
    kind="workspaces",
    target=workspaces,
    rows="workspaces w",
    key="w.id",
    columns={
        "id": "w.id",
        "name": "w.name",
        "owner_id": "coalesce(w.user_id, 1)",
        "archived": "w.archived",
        "immutable": "coalesce(w.immutable, false)",
        "state": folder_state("w.state"),
        "error_message": "coalesce(w.error_message, '')",
        "created_at": "w.created_at",
        "agent_uid": "w.uid",
        "agent_user": "w.user_",
        "agent_gid": "w.gid",
        "agent_group": "w.group_",
        "checkpoint_storage": json_object_or_null("w.checkpoint_storage_config"),
        "default_compute_pool": "coalesce(w.default_compute_pool, '')",
        "default_aux_pool": "coalesce(w.default_aux_pool, '')",
        "auto_created_namespace": "w.auto_created_namespace_name",
    },
    before=("UPDATE workspaces SET name = 'built-in ' || id",),
    replaces="id",
)

PINS: Final = CopiedTable(
    kind="workspace pins",
    target=workspace_pins,
    rows="workspace_pins p",
    key="p.id",
    columns={"workspace_id": "p.workspace_id", "user_id": "p.user_id", "pinned_at": "p.created_at"},
    skipped={"without a workspace or user": "p.workspace_id IS NULL OR p.user_id IS NULL"},
)

NAMESPACES: Final = CopiedTable(
    kind="namespace bindings",
    target=workspace_namespace_bindings,
    rows="workspace_namespace_bindings b",
    key="b.workspace_id",
    columns={
        "workspace_id": "b.workspace_id",
        "cluster_name": "b.cluster_name",
        "namespace": "b.namespace",
        "auto_created": "coalesce(b.auto_create_namespace, false)",
    },
    skipped={
        "the workspace has another one in that cluster": "EXISTS (SELECT FROM workspace_namespace_bindings o WHERE"
        " o.workspace_id = b.workspace_id AND o.cluster_name = b.cluster_name AND o.namespace < b.namespace)"
    },
)

MADE_NAMESPACES: Final = CopiedTable(
    kind="namespaces made for workspaces",
    target=auto_created_namespaces,
    rows="workspace_namespace_bindings b",
    key="b.workspace_id",
    columns={"cluster_name": "b.cluster_name", "namespace": "b.namespace", "workspace_id": "b.workspace_id"},
    skipped={"made by somebody else": "NOT coalesce(b.auto_create_namespace, false)"},
)

POOLS: Final = CopiedTable(
    kind="pool bindings",
    target=pool_bindings,
    rows="rp_workspace_bindings b",
    key="b.workspace_id",
    columns={"workspace_id": "b.workspace_id", "pool": "b.pool_name"},
    skipped={"the pool was gone": "NOT b.valid"},
)

# Clients leave out what is empty, so a note may lack either; the old server stores it as it came.
_NOTES: Final = """(SELECT coalesce(jsonb_agg(jsonb_build_object('name', coalesce(note.value ->> 'name', ''),
        'contents', coalesce(note.value ->> 'contents', '')) ORDER BY note.ordinality), '[]'::jsonb)
    FROM jsonb_array_elements(CASE WHEN jsonb_typeof(p.notes) = 'array' THEN p.notes ELSE '[]' END)
        WITH ORDINALITY note WHERE jsonb_typeof(note.value) = 'object')"""

PROJECTS: Final = CopiedTable(
    kind="projects",
    target=projects,
    rows="projects p",
    key="p.id",
    columns={
        "id": "p.id",
        "workspace_id": "coalesce(p.workspace_id, 1)",
        "name": "p.name",
        "description": "coalesce(p.description, '')",
        "key": "coalesce(p.key, 'P' || p.id)",
        "owner_id": "coalesce(p.user_id, 1)",
        "archived": "p.archived",
        "immutable": "coalesce(p.immutable, false)",
        "state": folder_state("p.state"),
        "error_message": "coalesce(p.error_message, '')",
        "created_at": "p.created_at",
        "notes": _NOTES,
        "max_local_id": "p.max_local_id",
    },
    before=(
        "DELETE FROM project_keys",
        "UPDATE projects SET name = 'built-in ' || id, key = 'built-in ' || id",
    ),
    replaces="id",
    counters=("max_local_id",),
)

# Those that a project had before are known from runs that were addressed by them.
_FORMER_KEYS: Final = (
    "SELECT DISTINCT ON (l.project_key) l.project_key AS key, l.project_id FROM local_id_redirect l"
    " WHERE NOT EXISTS (SELECT FROM projects o WHERE o.key = l.project_key)"
    " ORDER BY l.project_key, l.project_id"
)
PROJECT_KEYS: Final = CopiedTable(
    kind="project keys",
    target=project_keys,
    rows=f"(SELECT coalesce(p.key, 'P' || p.id) AS key, p.id AS project_id FROM projects p"  # noqa: S608
    f" UNION ALL ({_FORMER_KEYS})) k",
    key="k.key",
    key_type="text",
    columns={"key": "k.key", "project_id": "k.project_id"},
)

TEMPLATES: Final = CopiedTable(
    kind="templates",
    target=templates,
    rows="templates t",
    key="t.name",
    key_type="text",
    columns={"name": "t.name", "config": json_object("t.config"), "workspace_id": "t.workspace_id"},
)

POLICIES: Final = CopiedTable(
    kind="config policies",
    target=config_policies,
    rows="task_config_policies p",
    key="coalesce(p.workspace_id, 0)",
    columns={
        "workspace_id": "p.workspace_id",
        "workload_type": "p.workload_type::text",
        "invariant_config": json_object_or_null("p.invariant_config"),
        "constraints": json_object_or_null("p.constraints"),
        "updated_by": "p.last_updated_by",
        "updated_at": "p.last_updated_time",
    },
    identity=("workspace_id", "workload_type"),
)

WEBHOOKS: Final = CopiedTable(
    kind="webhooks",
    target=webhooks,
    rows="webhooks w",
    key="w.id",
    columns={
        "id": "w.id",
        "name": "w.name",
        "url": "w.url",
        "webhook_type": "w.webhook_type::text",
        "mode": "w.mode::text",
        "workspace_id": "w.workspace_id",
    },
)

TRIGGERS: Final = CopiedTable(
    kind="webhook triggers",
    target=webhook_triggers,
    rows="webhook_triggers t",
    key="t.id",
    columns={
        "id": "t.id",
        "webhook_id": "t.webhook_id",
        "trigger_type": "t.trigger_type::text",
        "condition": json_object("t.condition"),
    },
)
