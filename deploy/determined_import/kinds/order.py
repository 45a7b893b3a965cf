"""All kinds, in the order in which they refer to each other; and the tables of the old database that stay behind, with
the reason why (docs/reference/import.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deploy.determined_import.kinds import experiments, logs, people, registry, reports, tasks, workspaces
from deploy.determined_import.kinds.copied import CopiedTable

KINDS: Final[tuple[CopiedTable, ...]] = (
    people.USERS,
    people.SETTINGS,
    people.GROUPS,
    people.MEMBERS,
    people.PROVISIONED,
    people.OAUTH_CLIENTS,
    workspaces.WORKSPACES,
    people.ROLES,
    workspaces.PINS,
    workspaces.NAMESPACES,
    workspaces.MADE_NAMESPACES,
    workspaces.POOLS,
    workspaces.PROJECTS,
    workspaces.PROJECT_KEYS,
    workspaces.TEMPLATES,
    workspaces.POLICIES,
    workspaces.WEBHOOKS,
    workspaces.TRIGGERS,
    experiments.JOBS,
    experiments.EXPERIMENTS,
    experiments.MODEL_DEFINITIONS,
    experiments.TRIALS,
    experiments.TRIAL_SOURCES,
    experiments.FORMER_ADDRESSES,
    tasks.TASKS,
    tasks.GENERIC_TASKS,
    tasks.TRIAL_TASKS,
    tasks.ALLOCATIONS,
    tasks.ACCELERATORS,
    reports.STORAGES,
    reports.CHECKPOINTS,
    registry.MODELS,
    registry.VERSIONS,
    registry.USAGE,
    reports.METRICS,
)
LOG_KINDS: Final[tuple[CopiedTable, ...]] = (logs.STREAMS, logs.TRIAL_LINES, logs.LINES)

JOINED: Final[frozenset[str]] = frozenset(
    {
        "agent_user_groups",
        "allocation_workspace_info",
        "experiments",
        "role_assignment_scopes",
        "run_checkpoints",
        "runs_metadata",
        "storage_backend_azure",
        "storage_backend_directory",
        "storage_backend_gcs",
        "storage_backend_s3",
        "storage_backend_shared_fs",
        "task_context_directory",
        "trials_v2",
        "raw_steps",
        "raw_validations",
        "generic_metrics",
        "system_metrics",
    }
)
"""Tables whose rows become columns of others, or are read as parts of another table."""

_OLD_SERVER: Final = "of the old server itself"
_RUNNING: Final = "of work that ran when the old server was stopped"
_DERIVED: Final = "follows from what is imported"
_WEB: Final = "of the web interface, which this release does not have"

LEFT_BEHIND: Final[Mapping[str, str]] = {
    "activity": _WEB,
    "agent_stats": "its sums are among the days of usage",
    "allocation_resources": _RUNNING,
    "allocation_sessions": _RUNNING,
    "auth_token_keypair": _OLD_SERVER,
    "cert_and_key_info": _OLD_SERVER,
    "cluster_id": _OLD_SERVER,
    "cluster_messages": "messages of the day; write them again where they still hold",
    "command_state": _RUNNING,
    "config_files": _OLD_SERVER,
    "experiment_snapshots": "searches are told again what happened",
    "log_policy_dont_retry": _RUNNING,
    "log_policy_retry_on_different_node": _RUNNING,
    "notebook_sessions": _RUNNING,
    "permission_assignments": "roles are the same here",
    "permissions": "roles are the same here",
    "project_hparams": _DERIVED,
    "provisioner_instance_stats": "its sums are among the days of usage",
    "resourcemanagers_agent_agentstate": _OLD_SERVER,
    "resourcemanagers_agent_containers": _RUNNING,
    "resourcemanagers_dispatcher_dispatches": _RUNNING,
    "resourcemanagers_dispatcher_rm_state": _OLD_SERVER,
    "roles": "roles are the same here",
    "run_hparams": _DERIVED,
    "runs_metadata_index": _DERIVED,
    "task_stats": "its sums are among the days of usage",
    "trial_profiler_metrics": "of a profiler that was removed in 0.38",
    "trials_collections": _WEB,
    "user_profile_images": _WEB,
    "user_sessions": "signed by a key of the old server: everybody logs in again, and makes access tokens again",
    "views_and_triggers_hash": _OLD_SERVER,
    "webhook_events_queue": "not sent when the old server was stopped",
    "webhook_task_log_triggers": _RUNNING,
    "oauth.tokens": "made by the old server: authorize the clients of SCIM again",
}


_NOT_ASKED_FOR: Final = "not asked for: --logs imports them, also afterwards"


def reasons_left_behind(*, with_logs: bool) -> Mapping[str, str]:
    """Tables that are not imported, with why."""
    return LEFT_BEHIND if with_logs else {**LEFT_BEHIND, "task_logs": _NOT_ASKED_FOR, "trial_logs": _NOT_ASKED_FOR}


def chosen_kinds(*, with_logs: bool) -> tuple[CopiedTable, ...]:
    """What one import copies, in its order."""
    return (*KINDS, *LOG_KINDS) if with_logs else KINDS
