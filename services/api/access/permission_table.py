"""Permissions of all routes of the interface, one line each: who may make which call.

A row says which token a call takes. What a user may do is for the handler to say; a task that calls with its own token
(``DET_SESSION_TOKEN``, or ``DET_USER_TOKEN`` where the configuration narrows it) reaches no more than the rows with
``tasks_with`` name, and of that what is its own. ``access/authorization.py`` asks; a route without a row does not
start.
Source: docs/reference/harness-protocol.md 1.1 and 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from libs.loglines.posted import task_of
from services.api.access.route_permission import (
    ANYBODY,
    PERSONS,
    USERS,
    CallToCheck,
    OwnResource,
    ResourceKind,
    RoutePermission,
    number_in_path,
    tasks_with,
    text_in_path,
)


def _started_run(call: CallToCheck) -> tuple[int]:
    return (call.body.run_id,)


def _run_with_source(call: CallToCheck) -> tuple[int]:
    return (call.body.trial_source_info.trial_id if call.body.trial_source_info else 0,)


def _trials_of_metrics(call: CallToCheck) -> list[int]:
    return list(call.query.trial_ids)


def _trials_of_profiles(call: CallToCheck) -> list[int]:
    return [batch.labels.trial_id for batch in call.body.batches]


def _tasks_of_lines(call: CallToCheck) -> list[str]:
    return [task_of(record) for record in call.body.logs]


def _task_of_checkpoint(call: CallToCheck) -> tuple[str]:
    return (call.body.task_id,)


def _allocation_of_checkpoint(call: CallToCheck) -> tuple[str, ...]:
    return (call.body.allocation_id,) if call.body.allocation_id else ()


def _patched_checkpoints(call: CallToCheck) -> list[str]:
    return [checkpoint.uuid for checkpoint in call.body.checkpoints]


def _experiment_that_tells(call: CallToCheck) -> tuple[int]:
    return (call.body.experiment_id,)


ITSELF: Final = tasks_with()
ALLOCATION: Final = tasks_with(text_in_path(ResourceKind.ALLOCATION, "allocationId"))
TASK: Final = tasks_with(text_in_path(ResourceKind.TASK, "taskId"))
TRIAL: Final = tasks_with(number_in_path(ResourceKind.TRIAL, "trialId"))
EXPERIMENT: Final = tasks_with(number_in_path(ResourceKind.EXPERIMENT, "experimentId"))
METRICS: Final = tasks_with(OwnResource(ResourceKind.TRIAL, _trials_of_metrics))

PERMISSIONS: Final[Mapping[str, RoutePermission]] = {
    # The installation, and who is calling.
    "GET /": ANYBODY,
    "GET /det": ANYBODY,
    "GET /det/interactive/{rest:path}": ANYBODY,
    "GET /det/login": ANYBODY,
    "GET /det/wait/{rest:path}": ANYBODY,
    "GET /det/{rest:path}": ANYBODY,
    "GET /info": ANYBODY,
    "GET /stream": USERS,
    "GET /api/v1/master": ANYBODY,
    "GET /api/v1/master/telemetry": ANYBODY,
    "GET /api/v1/master/config": USERS,
    "PATCH /api/v1/master/config": USERS,
    "GET /api/v1/master/logs": USERS,
    "GET /api/v1/master/cluster_message": USERS,
    "PUT /api/v1/master/cluster_message": USERS,
    "DELETE /api/v1/master/cluster_message": USERS,
    "GET /api/v1/resolute/audit": USERS,
    "POST /api/v1/auth/login": ANYBODY,
    "GET /oidc/sso": ANYBODY,
    "GET /oidc/callback": ANYBODY,
    "GET /users/me": USERS,
    "POST /api/v1/auth/logout": ITSELF,
    "GET /api/v1/auth/user": ITSELF,
    "GET /api/v1/me": ITSELF,
    # Users and their tokens.
    "GET /api/v1/users": USERS,
    "POST /api/v1/users": PERSONS,
    "PATCH /api/v1/users": PERSONS,
    "GET /api/v1/users/{userId}": USERS,
    "PATCH /api/v1/users/{userId}": PERSONS,
    "POST /api/v1/users/{userId}/password": PERSONS,
    "GET /api/v1/users/{username}/by-username": USERS,
    "GET /api/v1/users/setting": USERS,
    "POST /api/v1/users/setting": USERS,
    "POST /api/v1/users/setting/reset": USERS,
    "POST /api/v1/users/activity": USERS,
    "GET /api/v1/user/projects/activity": USERS,
    "GET /api/v1/tokens": USERS,
    "POST /api/v1/tokens": PERSONS,
    "PATCH /api/v1/tokens/{tokenId}": PERSONS,
    "PATCH /api/v1/users/assignments": PERSONS,
    # A provider of identities, which is no user: services/api/scim/callers.py says who it has to be.
    "GET /scim/v2/Users": ANYBODY,
    "POST /scim/v2/Users": ANYBODY,
    "GET /scim/v2/Users/{id}": ANYBODY,
    "PUT /scim/v2/Users/{id}": ANYBODY,
    "PATCH /scim/v2/Users/{id}": ANYBODY,
    "DELETE /scim/v2/Users/{id}": ANYBODY,
    "GET /scim/v2/Groups": ANYBODY,
    "POST /scim/v2/Groups": ANYBODY,
    "GET /scim/v2/Groups/{id}": ANYBODY,
    "PUT /scim/v2/Groups/{id}": ANYBODY,
    "PATCH /scim/v2/Groups/{id}": ANYBODY,
    "DELETE /scim/v2/Groups/{id}": ANYBODY,
    "GET /scim/v2/ServiceProviderConfig": ANYBODY,
    "GET /scim/v2/ResourceTypes": ANYBODY,
    "GET /scim/v2/ResourceTypes/{id}": ANYBODY,
    "GET /scim/v2/Schemas": ANYBODY,
    "GET /scim/v2/Schemas/{id}": ANYBODY,
    # OAuth for it. Who authorizes a client may have to log in first, and clients are no users.
    "GET /oauth2/authorize": ANYBODY,
    "POST /oauth2/token": ANYBODY,
    "GET /oauth2/clients": PERSONS,
    "POST /oauth2/clients": PERSONS,
    "DELETE /oauth2/clients/{id}": PERSONS,
    # Groups of users, and their roles.
    "POST /api/v1/groups": PERSONS,
    "POST /api/v1/groups/search": USERS,
    "GET /api/v1/groups/{groupId}": USERS,
    "PUT /api/v1/groups/{groupId}": PERSONS,
    "DELETE /api/v1/groups/{groupId}": PERSONS,
    "GET /api/v1/permissions/summary": USERS,
    "POST /api/v1/roles/search": USERS,
    "POST /api/v1/roles/search/by-ids": USERS,
    "GET /api/v1/roles/search/by-user/{userId}": USERS,
    "GET /api/v1/roles/search/by-group/{groupId}": USERS,
    "POST /api/v1/roles/search/by-assignability": USERS,
    "POST /api/v1/roles/add-assignments": PERSONS,
    "POST /api/v1/roles/remove-assignments": PERSONS,
    "GET /api/v1/roles/workspace/{workspaceId}": USERS,
    # Allocations, tasks and their logs.
    "GET /api/v1/allocations/{allocationId}": ALLOCATION,
    "GET /api/v1/allocations/{allocationId}/signals/preemption": ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/signals/ack_preemption": ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/signals/pending_preemption": ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/ready": ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/waiting": ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/proxy_address": ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/acceleratorData": ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/all_gather": ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/notify_container_running": ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/resources/{resourcesId}/daemon": ALLOCATION,
    "GET /api/v1/allocations/{allocationId}/resources/{resourcesId}/rendezvous": ALLOCATION,
    "GET /tasks": USERS,
    "GET /api/v1/tasks": USERS,
    "GET /api/v1/tasks/count": USERS,
    "GET /api/v1/tasks/{taskId}": TASK,
    "GET /api/v1/tasks/{taskId}/acceleratorData": TASK,
    "GET /api/v1/tasks/{taskId}/config": TASK,
    "POST /api/v1/generic-tasks": USERS,
    "POST /api/v1/tasks/{taskId}/kill": USERS,
    "POST /api/v1/tasks/{taskId}/pause": USERS,
    "POST /api/v1/tasks/{taskId}/unpause": USERS,
    "GET /api/v1/tasks/{taskId}/context_directory": TASK,
    "GET /api/v1/tasks/{taskId}/logs": TASK,
    "GET /api/v1/tasks/{taskId}/logs/fields": TASK,
    "POST /api/v1/task/logs": tasks_with(OwnResource(ResourceKind.TASK, _tasks_of_lines)),
    "POST /task-logs": USERS,
    "POST /api/v1/cleanup_logs": USERS,
    # Notebooks, TensorBoards, shells and commands.
    "GET /api/v1/commands": USERS,
    "POST /api/v1/commands": USERS,
    "GET /api/v1/commands/{commandId}": USERS,
    "POST /api/v1/commands/{commandId}/kill": USERS,
    "POST /api/v1/commands/{commandId}/set_priority": USERS,
    "GET /api/v1/notebooks": USERS,
    "POST /api/v1/notebooks": USERS,
    "GET /api/v1/notebooks/{notebookId}": USERS,
    "POST /api/v1/notebooks/{notebookId}/kill": USERS,
    "POST /api/v1/notebooks/{notebookId}/set_priority": USERS,
    "GET /api/v1/shells": USERS,
    "POST /api/v1/shells": USERS,
    "GET /api/v1/shells/{shellId}": USERS,
    "POST /api/v1/shells/{shellId}/kill": USERS,
    "POST /api/v1/shells/{shellId}/set_priority": USERS,
    "GET /api/v1/tensorboards": USERS,
    "POST /api/v1/tensorboards": USERS,
    "GET /api/v1/tensorboards/{tensorboardId}": USERS,
    "POST /api/v1/tensorboards/{tensorboardId}/kill": USERS,
    "POST /api/v1/tensorboards/{tensorboardId}/set_priority": USERS,
    "PUT /api/v1/notebooks/{notebookId}/report_idle": tasks_with(text_in_path(ResourceKind.TASK, "notebookId")),
    # Trials, which are runs, and their metrics.
    "POST /api/v1/runs": USERS,
    "POST /api/v1/runs/archive": USERS,
    "POST /api/v1/runs/delete": USERS,
    "POST /api/v1/runs/kill": USERS,
    "POST /api/v1/runs/move": USERS,
    "POST /api/v1/runs/pause": USERS,
    "POST /api/v1/runs/resume": USERS,
    "POST /api/v1/runs/unarchive": USERS,
    "POST /api/v1/runs/start": tasks_with(OwnResource(ResourceKind.TRIAL, _started_run)),
    "GET /api/v1/runs/{runId}/metadata": tasks_with(number_in_path(ResourceKind.TRIAL, "runId")),
    "POST /api/v1/runs/{runId}/metadata": tasks_with(number_in_path(ResourceKind.TRIAL, "runId")),
    "GET /api/v1/trials/{trialId}": TRIAL,
    "GET /api/v1/trials/{trialId}/workloads": TRIAL,
    "GET /api/v1/trials/{trialId}/logs": TRIAL,
    "GET /api/v1/trials/{trialId}/logs/fields": TRIAL,
    "GET /api/v1/trials/{id}/checkpoints": tasks_with(number_in_path(ResourceKind.TRIAL, "id")),
    "GET /api/v1/trials/{id}/remaining_log_retention_days": USERS,
    "GET /api/v1/trials/metrics/trial_metrics": METRICS,
    "GET /api/v1/trials/metrics/training_metrics": METRICS,
    "GET /api/v1/trials/metrics/validation_metrics": METRICS,
    "GET /api/v1/trials/time-series": METRICS,
    "GET /api/v1/resolute/trials/{trialId}/metric-names": TRIAL,
    "GET /api/v1/trials/{trialId}/profiler/available_series": TRIAL,
    "GET /api/v1/trials/{trialId}/profiler/metrics": TRIAL,
    "POST /api/v1/trials/profiler/metrics": tasks_with(OwnResource(ResourceKind.TRIAL, _trials_of_profiles)),
    "POST /api/v1/trials/{trialId}/metrics": TRIAL,
    "POST /api/v1/trials/{trialId}/training_metrics": TRIAL,
    "POST /api/v1/trials/{trialId}/validation_metrics": TRIAL,
    "POST /api/v1/trials/{trialId}/progress": TRIAL,
    "POST /api/v1/trials/{trialId}/early_exit": TRIAL,
    "POST /api/v1/trials/{trialId}/runner/metadata": TRIAL,
    "POST /api/v1/trial-source-info": tasks_with(OwnResource(ResourceKind.TRIAL, _run_with_source)),
    "POST /api/v1/trials/{id}/kill": USERS,
    "PUT /api/v1/trials/{trialId}/retain_logs": USERS,
    # Those that run elsewhere, with the session of a user.
    "POST /api/v1/trials": USERS,
    "PUT /api/v1/trials": USERS,
    "PATCH /api/v1/trials/{trialId}": USERS,
    "POST /api/v1/trials/{trialId}/start": USERS,
    "GET /api/v1/trials/by-external-id/{externalExperimentId}/{externalTrialId}": USERS,
    # Checkpoints.
    "POST /api/v1/checkpoints": tasks_with(
        OwnResource(ResourceKind.TASK, _task_of_checkpoint),
        OwnResource(ResourceKind.ALLOCATION, _allocation_of_checkpoint),
    ),
    "PATCH /api/v1/checkpoints": tasks_with(OwnResource(ResourceKind.CHECKPOINT, _patched_checkpoints)),
    "DELETE /api/v1/checkpoints": USERS,
    "POST /api/v1/checkpoints/rm": USERS,
    "GET /api/v1/checkpoints/{checkpointUuid}": tasks_with(
        text_in_path(ResourceKind.READABLE_CHECKPOINT, "checkpointUuid")
    ),
    "POST /api/v1/checkpoints/{checkpointUuid}/metadata": tasks_with(
        text_in_path(ResourceKind.CHECKPOINT, "checkpointUuid")
    ),
    "GET /api/v1/checkpoints/{checkpointUuid}/metrics": USERS,
    "GET /checkpoints/{uuid}": tasks_with(text_in_path(ResourceKind.READABLE_CHECKPOINT, "uuid")),
    # The model registry.
    "GET /api/v1/models": USERS,
    "POST /api/v1/models": USERS,
    "GET /api/v1/models/{modelName}": USERS,
    "PATCH /api/v1/models/{modelName}": USERS,
    "DELETE /api/v1/models/{modelName}": USERS,
    "POST /api/v1/models/{modelName}/archive": USERS,
    "POST /api/v1/models/{modelName}/unarchive": USERS,
    "POST /api/v1/models/{modelName}/move": USERS,
    "GET /api/v1/model/labels": USERS,
    "GET /api/v1/models/{modelName}/versions": USERS,
    "POST /api/v1/models/{modelName}/versions": USERS,
    "GET /api/v1/models/{modelName}/versions/{modelVersionNum}": USERS,
    "PATCH /api/v1/models/{modelName}/versions/{modelVersionNum}": USERS,
    "DELETE /api/v1/models/{modelName}/versions/{modelVersionNum}": USERS,
    "GET /api/v1/models/{modelName}/versions/{modelVersionNum}/metrics": USERS,
    # Experiments.
    "POST /api/v1/experiments": USERS,
    "POST /api/v1/experiments/continue": USERS,
    "PUT /api/v1/experiments/by-external-id/{externalExperimentId}": USERS,
    "GET /api/v1/experiments": USERS,
    "GET /api/v1/experiments/{experimentId}": EXPERIMENT,
    "PATCH /api/v1/experiments/{experiment_id}": USERS,
    "DELETE /api/v1/experiments/{experimentId}": USERS,
    "GET /api/v1/experiments/{experimentId}/trials": USERS,
    "GET /api/v1/experiments/{experimentId}/validation-history": USERS,
    "GET /api/v1/experiments/metrics-stream/metric-names": USERS,
    "GET /api/v1/experiments/{experimentId}/metrics-stream/batches": EXPERIMENT,
    "GET /api/v1/experiments/{experimentId}/metrics-stream/trials-sample": EXPERIMENT,
    "GET /api/v1/experiments/{experimentId}/metrics-stream/trials-snapshot": EXPERIMENT,
    "GET /api/v1/experiments/{experimentId}/searcher/best_searcher_validation_metric": EXPERIMENT,
    "GET /api/v1/experiments/{id}/checkpoints": tasks_with(number_in_path(ResourceKind.EXPERIMENT, "id")),
    "GET /api/v1/experiments/{experimentId}/model_def": EXPERIMENT,
    "GET /api/v1/experiments/{experimentId}/file_tree": USERS,
    "POST /api/v1/experiments/{experimentId}/file": USERS,
    "GET /experiments/{experimentId}/model_def": USERS,
    "GET /experiments/{experimentId}/file/download": USERS,
    "GET /experiments/{experimentId}/preview_gc": USERS,
    "POST /api/v1/experiments/{id}/activate": USERS,
    "POST /api/v1/experiments/{id}/pause": USERS,
    "POST /api/v1/experiments/{id}/cancel": USERS,
    "POST /api/v1/experiments/{id}/kill": USERS,
    "POST /api/v1/experiments/{id}/archive": USERS,
    "POST /api/v1/experiments/{id}/unarchive": USERS,
    "POST /api/v1/experiments/{experimentId}/move": USERS,
    "PUT /api/v1/experiments/{experimentId}/retain_logs": USERS,
    "DELETE /api/v1/experiments/{experimentId}/tensorboard-files": USERS,
    "GET /api/v1/experiment/labels": USERS,
    "PUT /api/v1/experiments/{experimentId}/labels/{label}": USERS,
    "DELETE /api/v1/experiments/{experimentId}/labels/{label}": USERS,
    "POST /api/v1/experiments-search": USERS,
    "POST /api/v1/projects/{projectId}/experiments/activate": USERS,
    "POST /api/v1/projects/{projectId}/experiments/pause": USERS,
    "POST /api/v1/projects/{projectId}/experiments/cancel": USERS,
    "POST /api/v1/projects/{projectId}/experiments/kill": USERS,
    "POST /api/v1/projects/{projectId}/experiments/archive": USERS,
    "POST /api/v1/projects/{projectId}/experiments/unarchive": USERS,
    "DELETE /api/v1/projects/{projectId}/experiments/delete": USERS,
    "POST /api/v1/projects/{projectId}/experiments/move": USERS,
    "PUT /api/v1/projects/{projectId}/experiments/retain_logs": USERS,
    "POST /api/v1/preview-hp-search": USERS,
    # Templates.
    "GET /api/v1/templates": USERS,
    "GET /api/v1/templates/{name:path}": USERS,
    "POST /api/v1/templates/{name:path}": USERS,
    "PUT /api/v1/templates/{name:path}": USERS,
    "PATCH /api/v1/templates/{name:path}": USERS,
    "DELETE /api/v1/templates/{name:path}": USERS,
    "PATCH /api/v1/template/rename": USERS,
    # Webhooks.
    "GET /api/v1/webhooks": USERS,
    "POST /api/v1/webhooks": USERS,
    "PATCH /api/v1/webhooks/{id}": USERS,
    "DELETE /api/v1/webhooks/{id}": USERS,
    "POST /api/v1/webhooks/{id}/test": USERS,
    "POST /api/v1/webhooks/custom": tasks_with(OwnResource(ResourceKind.EXPERIMENT, _experiment_that_tells)),
    "GET /api/v1/resolute/event-webhooks": USERS,
    "POST /api/v1/resolute/event-webhooks": USERS,
    "PATCH /api/v1/resolute/event-webhooks/{id}": USERS,
    "DELETE /api/v1/resolute/event-webhooks/{id}": USERS,
    "POST /api/v1/resolute/event-webhooks/{id}/test": USERS,
    # What is fixed or limited in configurations.
    "GET /api/v1/config-policies/global/{workloadType}": USERS,
    "PUT /api/v1/config-policies/global/{workloadType}": USERS,
    "DELETE /api/v1/config-policies/global/{workloadType}": USERS,
    "GET /api/v1/config-policies/workspaces/{workspaceId}/{workloadType}": USERS,
    "PUT /api/v1/config-policies/workspaces/{workspaceId}/{workloadType}": USERS,
    "DELETE /api/v1/config-policies/workspaces/{workspaceId}/{workloadType}": USERS,
    # The queue, and what there is to run on.
    "GET /api/v1/resolute/waiting": USERS,
    "GET /api/v1/resolute/limits": USERS,
    "PUT /api/v1/resolute/limits": USERS,
    "DELETE /api/v1/resolute/limits/{limitId}": USERS,
    "GET /api/v1/resolute/shares": USERS,
    "PUT /api/v1/resolute/shares": USERS,
    "DELETE /api/v1/resolute/shares/{shareId}": USERS,
    "POST /api/v1/resolute/check": USERS,
    "POST /api/v1/resolute/check/tasks": USERS,
    "GET /api/v1/resolute/maintenance": USERS,
    "POST /api/v1/resolute/maintenance": USERS,
    "PATCH /api/v1/resolute/maintenance/{id}": USERS,
    "DELETE /api/v1/resolute/maintenance/{id}": USERS,
    "GET /api/v1/job-queues": USERS,
    "GET /api/v1/job-queues-v2": USERS,
    "GET /api/v1/job-queues/stats": USERS,
    "POST /api/v1/job-queues": USERS,
    "GET /api/v1/agents": USERS,
    "GET /api/v1/agents/{agentId}": USERS,
    "POST /api/v1/agents/{agentId}/disable": USERS,
    "POST /api/v1/agents/{agentId}/enable": USERS,
    "GET /api/v1/agents/{agentId}/slots": USERS,
    "GET /api/v1/agents/{agentId}/slots/{slotId}": USERS,
    "POST /api/v1/agents/{agentId}/slots/{slotId}/enable": USERS,
    "POST /api/v1/agents/{agentId}/slots/{slotId}/disable": USERS,
    "GET /api/v1/resources/allocation/raw": USERS,
    "GET /api/v1/resources/allocation/aggregated": USERS,
    "GET /resources/allocation/raw": USERS,
    "GET /resources/allocation/allocations-csv": USERS,
    "GET /resources/allocation/aggregated": USERS,
    "GET /prom/det-state-metrics": USERS,
    "GET /prom/det-http-sd-config": USERS,
    "GET /api/v1/resource-pools": USERS,
    "GET /api/v1/resource-pools/{resourcePoolName}/workspace-bindings": USERS,
    "POST /api/v1/resource-pools/{resourcePoolName}/workspace-bindings": USERS,
    "PUT /api/v1/resource-pools/{resourcePoolName}/workspace-bindings": USERS,
    "DELETE /api/v1/resource-pools/{resourcePoolName}/workspace-bindings": USERS,
    "GET /api/v1/k8s-resource-managers": USERS,
    # Workspaces and projects.
    "GET /api/v1/workspaces": USERS,
    "POST /api/v1/workspaces": USERS,
    "GET /api/v1/workspaces/{id}": USERS,
    "PATCH /api/v1/workspaces/{id}": USERS,
    "DELETE /api/v1/workspaces/{id}": USERS,
    "POST /api/v1/workspaces/{id}/archive": USERS,
    "POST /api/v1/workspaces/{id}/unarchive": USERS,
    "POST /api/v1/workspaces/{id}/pin": USERS,
    "POST /api/v1/workspaces/{id}/unpin": USERS,
    "GET /api/v1/workspaces/{id}/projects": USERS,
    "GET /api/v1/workspaces/{workspaceId}/available-resource-pools": USERS,
    "POST /api/v1/workspaces/{workspaceId}/namespace-bindings": USERS,
    "DELETE /api/v1/workspaces/{workspaceId}/namespace-bindings": USERS,
    "GET /api/v1/workspaces/{id}/list-namespace-bindings": USERS,
    "POST /api/v1/workspaces/{id}/set-resource-quota": USERS,
    "GET /api/v1/workspaces/{id}/get-k8s-resource-quotas": USERS,
    "GET /api/v1/namespace-bindings/workspace-ids-with-default-bindings": USERS,
    "POST /api/v1/namespace-bindings/bulk-auto-create": USERS,
    "POST /api/v1/workspaces/{workspaceId}/projects": USERS,
    "GET /api/v1/projects/{id}": USERS,
    "GET /api/v1/projects/key/{key}": USERS,
    "GET /api/v1/projects/{id}/columns": USERS,
    "GET /api/v1/projects/{id}/experiments/metric-ranges": USERS,
    "GET /api/v1/projects/{projectId}/metadata/{key}": USERS,
    "PATCH /api/v1/projects/{id}": USERS,
    "DELETE /api/v1/projects/{id}": USERS,
    "POST /api/v1/projects/{id}/archive": USERS,
    "POST /api/v1/projects/{id}/unarchive": USERS,
    "POST /api/v1/projects/{projectId}/move": USERS,
    "POST /api/v1/projects/{projectId}/notes": USERS,
    "PUT /api/v1/projects/{projectId}/notes": USERS,
}
