"""What the audit log has of each call: everything that changes something is recorded, unless a row says why not.

A call without a row is recorded with its path alone, so that a new endpoint cannot be forgotten. Of a body only the
fields in ``VALUES`` are recorded with what they say; of others, which may be secret or large, it is said that they were
there. Calls with the narrow token of a task are reports about itself and are not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_READS: Final = frozenset({"GET", "HEAD"})
_REPORT: Final = "tasks report it about themselves; what they report is kept"
_PREVIEW: Final = "changes nothing"

EXEMPT: Final[Mapping[str, str]] = {
    "POST /api/v1/allocations/{allocationId}/signals/ack_preemption": _REPORT,
    "POST /api/v1/allocations/{allocationId}/ready": _REPORT,
    "POST /api/v1/allocations/{allocationId}/waiting": _REPORT,
    "POST /api/v1/allocations/{allocationId}/proxy_address": _REPORT,
    "POST /api/v1/allocations/{allocationId}/acceleratorData": _REPORT,
    "POST /api/v1/allocations/{allocationId}/all_gather": _REPORT,
    "POST /api/v1/allocations/{allocationId}/notify_container_running": _REPORT,
    "POST /api/v1/allocations/{allocationId}/resources/{resourcesId}/daemon": _REPORT,
    "POST /api/v1/checkpoints": _REPORT,
    "POST /api/v1/runs/start": _REPORT,
    "POST /api/v1/runs/{runId}/metadata": _REPORT,
    "POST /api/v1/trials/profiler/metrics": _REPORT,
    "POST /api/v1/trials/{trialId}/metrics": _REPORT,
    "POST /api/v1/trials/{trialId}/training_metrics": _REPORT,
    "POST /api/v1/trials/{trialId}/validation_metrics": _REPORT,
    "POST /api/v1/trials/{trialId}/progress": _REPORT,
    "POST /api/v1/trials/{trialId}/early_exit": _REPORT,
    "POST /api/v1/trials/{trialId}/runner/metadata": _REPORT,
    "POST /api/v1/trial-source-info": _REPORT,
    "PATCH /api/v1/trials/{trialId}": "heartbeats and states of a trial that runs elsewhere; its row keeps the last",
    "POST /api/v1/task/logs": _REPORT,
    "PUT /api/v1/notebooks/{notebookId}/report_idle": _REPORT,
    "POST /task-logs": _REPORT,
    "POST /api/v1/webhooks/custom": _REPORT,
    "POST /api/v1/experiments/{experimentId}/file": "reads a file",
    "POST /api/v1/preview-hp-search": _PREVIEW,
    "POST /api/v1/resolute/check": _PREVIEW,
    "POST /api/v1/resolute/check/tasks": _PREVIEW,
    "POST /api/v1/experiments-search": _PREVIEW,
    "POST /api/v1/runs": _PREVIEW,
    "POST /api/v1/groups/search": _PREVIEW,
    "POST /api/v1/roles/search": _PREVIEW,
    "POST /api/v1/roles/search/by-ids": _PREVIEW,
    "POST /api/v1/roles/search/by-assignability": _PREVIEW,
    "POST /oauth2/token": "clients ask for a new token every hour",
    "POST /api/v1/users/setting": "what somebody's own pages look like",
    "POST /api/v1/users/setting/reset": "what somebody's own pages look like",
    "POST /api/v1/users/activity": "what somebody's own pages look like",
    "POST /api/v1/workspaces/{id}/pin": "what somebody's own pages look like",
    "POST /api/v1/workspaces/{id}/unpin": "what somebody's own pages look like",
}
"""Call -> why it is not recorded."""

_SELECTION: Final = ("experiment_ids",)
_WORKSPACES: Final = ("workspace_ids", "workspace_names")
_ASSIGNMENTS: Final = ("group_role_assignments", "user_role_assignments")
_RUNS: Final = ("run_ids", "project_id", "filter")

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "POST /api/v1/auth/login": ("username",),
    "POST /api/v1/users": ("user.username", "user.display_name", "user.admin", "user.active", "user.remote"),
    "PATCH /api/v1/users": ("user_ids", "activate"),
    "PATCH /api/v1/users/{userId}": ("username", "display_name", "admin", "active", "remote"),
    "POST /api/v1/tokens": ("user_id", "lifespan", "description"),
    "PATCH /api/v1/tokens/{tokenId}": ("description", "set_revoked"),
    "PATCH /api/v1/users/assignments": ("user_ids", "add_groups", "remove_groups"),
    "POST /oauth2/clients": ("name", "domain"),
    "POST /api/v1/groups": ("name", "add_users"),
    "PUT /api/v1/groups/{groupId}": ("name", "add_users", "remove_users"),
    "POST /api/v1/roles/add-assignments": _ASSIGNMENTS,
    "POST /api/v1/roles/remove-assignments": _ASSIGNMENTS,
    "PATCH /api/v1/master/config": ("config.log.level", "config.log.color", "field_mask.paths"),
    "POST /api/v1/resource-pools/{resourcePoolName}/workspace-bindings": _WORKSPACES,
    "PUT /api/v1/resource-pools/{resourcePoolName}/workspace-bindings": _WORKSPACES,
    "DELETE /api/v1/resource-pools/{resourcePoolName}/workspace-bindings": _WORKSPACES,
    "PUT /api/v1/master/cluster_message": ("message", "start_time", "end_time", "duration"),
    "POST /api/v1/agents/{agentId}/disable": ("drain",),
    "POST /api/v1/resolute/maintenance": ("resource_pool", "nodes", "start_time", "end_time", "message"),
    "PATCH /api/v1/resolute/maintenance/{id}": ("resource_pool", "nodes", "start_time", "end_time", "message"),
    "POST /api/v1/checkpoints/rm": ("checkpoint_uuids", "checkpoint_globs"),
    "DELETE /api/v1/checkpoints": ("checkpoint_uuids",),
    "POST /api/v1/experiments": ("project_id", "template", "parent_id", "activate", "validate_only", "unmanaged"),
    "PUT /api/v1/experiments/by-external-id/{externalExperimentId}": ("project_id", "template"),
    "POST /api/v1/trials": ("experiment_id",),
    "PUT /api/v1/trials": ("create_trial_request.experiment_id", "external_trial_id"),
    "POST /api/v1/trials/{trialId}/start": ("resume",),
    "POST /api/v1/experiments/continue": ("id",),
    "PATCH /api/v1/experiments/{experiment_id}": ("name", "labels"),
    "POST /api/v1/experiments/{experimentId}/move": ("destination_project_id",),
    "PUT /api/v1/experiments/{experimentId}/retain_logs": ("num_days",),
    "PUT /api/v1/trials/{trialId}/retain_logs": ("num_days",),
    "POST /api/v1/projects/{projectId}/experiments/activate": _SELECTION,
    "POST /api/v1/projects/{projectId}/experiments/pause": _SELECTION,
    "POST /api/v1/projects/{projectId}/experiments/cancel": _SELECTION,
    "POST /api/v1/projects/{projectId}/experiments/kill": _SELECTION,
    "POST /api/v1/projects/{projectId}/experiments/archive": _SELECTION,
    "POST /api/v1/projects/{projectId}/experiments/unarchive": _SELECTION,
    "DELETE /api/v1/projects/{projectId}/experiments/delete": _SELECTION,
    "POST /api/v1/projects/{projectId}/experiments/move": (*_SELECTION, "destination_project_id"),
    "PUT /api/v1/projects/{projectId}/experiments/retain_logs": (*_SELECTION, "num_days"),
    "POST /api/v1/runs/archive": _RUNS,
    "POST /api/v1/runs/delete": _RUNS,
    "POST /api/v1/runs/kill": _RUNS,
    "POST /api/v1/runs/move": (
        "run_ids",
        "source_project_id",
        "destination_project_id",
        "filter",
        "skip_multitrial",
    ),
    "POST /api/v1/runs/pause": _RUNS,
    "POST /api/v1/runs/resume": _RUNS,
    "POST /api/v1/runs/unarchive": _RUNS,
    "POST /api/v1/generic-tasks": ("project_id", "parent_id", "forked_from", "inherit_context", "no_pause"),
    "POST /api/v1/tasks/{taskId}/kill": ("kill_from_root",),
    "POST /api/v1/workspaces": ("name", "default_compute_pool", "default_aux_pool", "cluster_namespace_meta"),
    "PATCH /api/v1/workspaces/{id}": ("name", "default_compute_pool", "default_aux_pool", "cluster_namespace_meta"),
    "POST /api/v1/workspaces/{workspaceId}/namespace-bindings": ("cluster_namespace_meta",),
    "POST /api/v1/workspaces/{id}/set-resource-quota": ("cluster_quota_pairs",),
    "POST /api/v1/namespace-bindings/bulk-auto-create": ("workspace_ids",),
    "POST /api/v1/workspaces/{workspaceId}/projects": ("name", "key"),
    "PATCH /api/v1/projects/{id}": ("name", "key"),
    "POST /api/v1/projects/{projectId}/move": ("destination_workspace_id",),
    # Without their URLs, which for Slack are secrets.
    "POST /api/v1/webhooks": ("name", "webhook_type", "mode", "workspace_id"),
    "POST /api/v1/resolute/event-webhooks": ("name", "types"),
    "PUT /api/v1/resolute/limits": (
        "scope",
        "name",
        "resource_pool",
        "slots",
        "slot_hours",
        "period",
        "enforce",
    ),
    "PUT /api/v1/resolute/shares": ("scope", "name", "weight"),
    "PUT /api/v1/config-policies/global/{workloadType}": ("config_policies",),
    "PUT /api/v1/config-policies/workspaces/{workspaceId}/{workloadType}": ("config_policies",),
    "PATCH /api/v1/template/rename": ("old_name", "new_name"),
    "POST /api/v1/models": ("name", "workspace_id", "workspace_name"),
    "PATCH /api/v1/models/{modelName}": ("name", "workspace_id", "workspace_name"),
    "POST /api/v1/models/{modelName}/move": ("destination_workspace_id",),
    "POST /api/v1/models/{modelName}/versions": ("checkpoint_uuid",),
}
"""Call -> fields of its body that are recorded as they are; a dot leads into a field."""


@dataclass(frozen=True, slots=True)
class AuditRule:
    action: str
    """Method and path of the route."""
    values: tuple[str, ...] = ()


def audit_rule(method: str, path: str) -> AuditRule | None:
    """What is recorded of a call; None for nothing."""
    call = f"{method} {path}"
    if method in _READS or call in EXEMPT:
        return None
    return AuditRule(call, VALUES.get(call, ()))
