"""What each call is an action on, under RBAC: one line each. Data.

A call without a row is for those only who have every permission there is, so that a new endpoint opens nothing by
being forgotten. ``OPEN`` are calls that are for everybody, and those whose handlers ask ``call.rights`` themselves,
because what they are about is known to them only: lists, and whatever is made where its configuration says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import UNSET

from services.api.access.rights.actions import Action
from services.api.access.rights.locations import ObjectKind
from services.api.access.rights.needs import OPEN, Need, Needs
from services.api.access.route_permission import CallToCheck


def _on(action: Action, kind: ObjectKind, *names: str, tasks: Action | None = None) -> Needs:
    """An action on the object whose number or name is in the path."""
    return tuple(Need(action, kind, _in_path(kind, name), of_experiment=tasks) for name in names)


_TEXTS: Final = frozenset(
    {
        ObjectKind.PROJECT_KEY,
        ObjectKind.EXTERNAL_EXPERIMENT,
        ObjectKind.TASK,
        ObjectKind.NOTEBOOK,
        ObjectKind.SHELL,
        ObjectKind.COMMAND,
        ObjectKind.TENSORBOARD,
        ObjectKind.ALLOCATION,
        ObjectKind.CHECKPOINT,
        ObjectKind.TEMPLATE,
    }
)


def _in_path(kind: ObjectKind, name: str) -> Callable[[CallToCheck], Iterable[str | int]]:
    if kind is ObjectKind.PROJECT_KEY:
        return lambda call: (call.path_str(name).upper(),)
    if kind in _TEXTS:
        return lambda call: (call.path_str(name),)
    # 0 stands for all workspaces, and -1 for all projects; those calls are lists.
    return lambda call: tuple(ident for ident in (call.path_int(name),) if ident > 0)


def _in_body(action: Action, kind: ObjectKind, ids: Callable[[CallToCheck], Iterable[str | int]]) -> Needs:
    return (Need(action, kind, ids),)


def _cluster(action: Action) -> Needs:
    return (Need(action),)


def _edit_workspace(call: CallToCheck) -> bool:
    return call.body.name is not UNSET


def _sets_identity(call: CallToCheck) -> bool:
    return call.body.agent_user_group is not UNSET


def _sets_storage(call: CallToCheck) -> bool:
    return call.body.checkpoint_storage_config is not UNSET


def _sets_pools(call: CallToCheck) -> bool:
    return any(getattr(call.body, name, "") not in (UNSET, "") for name in ("default_compute_pool", "default_aux_pool"))


def _changes_pools(call: CallToCheck) -> bool:
    names = ("default_compute_pool", "default_aux_pool", "default_compute_resource_pool", "default_aux_resource_pool")
    return any(getattr(call.body, name, UNSET) is not UNSET for name in names)


def _binds(call: CallToCheck) -> bool:
    return bool(call.body.cluster_namespace_meta or call.body.auto_create_namespace_all_clusters)


def _sets_quotas(call: CallToCheck) -> bool:
    return bool(getattr(call.body, "cluster_quota_pairs", None))


def _on_workspace(action: Action, when: Callable[[CallToCheck], bool] | None = None) -> Need:
    return Need(action, ObjectKind.WORKSPACE, _in_path(ObjectKind.WORKSPACE, "id"), when=when)


_A, _K = Action, ObjectKind

_VIEW_WORKSPACE: Final = (_on_workspace(_A.VIEW_WORKSPACE),)
_VIEW_PROJECT: Final = _on(_A.VIEW_PROJECT, _K.PROJECT, "id")
_EDIT_PROJECT: Final = _on(_A.EDIT_PROJECT, _K.PROJECT, "id")
_VIEW_TRIAL: Final = _on(_A.VIEW_EXPERIMENT, _K.TRIAL, "trialId")
_TRIAL_LOGS: Final = _on(_A.VIEW_ARTIFACTS, _K.TRIAL, "trialId")
_CONTROL_TRIAL: Final = _on(_A.CONTROL_EXPERIMENT, _K.TRIAL, "trialId")
_VIEW_EXPERIMENT: Final = _on(_A.VIEW_EXPERIMENT, _K.EXPERIMENT, "experimentId")
_ARTIFACTS: Final = _on(_A.VIEW_ARTIFACTS, _K.EXPERIMENT, "experimentId")
_EDIT_EXPERIMENT: Final = _on(_A.EDIT_EXPERIMENT, _K.EXPERIMENT, "experimentId")
_CONTROL_EXPERIMENT: Final = _on(_A.CONTROL_EXPERIMENT, _K.EXPERIMENT, "id")
_VIEW_TASK: Final = _on(_A.VIEW_TASK, _K.TASK, "taskId", tasks=_A.VIEW_EXPERIMENT)
_TASK_LOGS: Final = _on(_A.VIEW_TASK, _K.TASK, "taskId", tasks=_A.VIEW_ARTIFACTS)
_CONTROL_TASK: Final = _on(_A.CONTROL_TASK, _K.TASK, "taskId", tasks=_A.CONTROL_EXPERIMENT)
_VIEW_ALLOCATION: Final = _on(_A.VIEW_TASK, _K.ALLOCATION, "allocationId", tasks=_A.VIEW_EXPERIMENT)
_CONTROL_ALLOCATION: Final = _on(_A.CONTROL_TASK, _K.ALLOCATION, "allocationId", tasks=_A.CONTROL_EXPERIMENT)
_CHECKPOINTS: Final = _in_body(_A.EDIT_CHECKPOINT, _K.CHECKPOINT, lambda call: call.body.checkpoint_uuids)
_METRICS: Final = _in_body(_A.VIEW_EXPERIMENT, _K.TRIAL, lambda call: call.query.trial_ids)


# Each of the experiments or runs has a result of its own, which says what the caller may not do with it; what the
# caller may not know of is not there.
_BULK: Final = _on(_A.VIEW_PROJECT, _K.PROJECT, "projectId")
_RUNS: Final = _in_body(_A.VIEW_PROJECT, _K.PROJECT, lambda call: [i for i in (call.body.project_id,) if i > 0])


def _template(name: str) -> Need:
    def named(call: CallToCheck) -> tuple[str, ...]:
        return (getattr(call.body, name),) if getattr(call.body, name) else ()

    return Need(_A.VIEW_TEMPLATE, _K.TEMPLATE, named)


_NEW_EXPERIMENT: Final = (
    Need(_A.FORK_EXPERIMENT, _K.EXPERIMENT, lambda call: (call.body.parent_id,) if call.body.parent_id else ()),
    _template("template"),
)


def _is_another(call: CallToCheck) -> bool:
    """The user in the path is not who calls."""
    return call.path_int("userId") != call.principal.user_id


def _is_for_another(call: CallToCheck) -> bool:
    return call.body.user_id not in (0, call.principal.user_id)


def _sets_privileges(call: CallToCheck) -> bool:
    return any(getattr(call.body, name) is not UNSET for name in ("admin", "active", "remote", "agent_user_group"))


def _other_tasks(call: CallToCheck) -> list[str]:
    return [ident for ident in (call.body.forked_from, call.body.parent_id) if ident]


CALLS: Final[Mapping[str, Needs]] = {
    "GET /api/v1/master/config": _cluster(_A.VIEW_MASTER_CONFIG),
    "PATCH /api/v1/master/config": _cluster(_A.EDIT_MASTER_CONFIG),
    "GET /api/v1/master/cluster_message": _cluster(_A.VIEW_CLUSTER_MESSAGE),
    "PUT /api/v1/master/cluster_message": _cluster(_A.SET_CLUSTER_MESSAGE),
    "DELETE /api/v1/master/cluster_message": _cluster(_A.CLEAR_CLUSTER_MESSAGE),
    "GET /api/v1/master/logs": _cluster(_A.VIEW_MASTER_LOGS),
    "GET /api/v1/resolute/audit": _cluster(_A.READ_AUDIT_LOG),
    "GET /stream": OPEN,
    "POST /api/v1/auth/logout": OPEN,
    "GET /api/v1/auth/user": OPEN,
    "GET /api/v1/me": OPEN,
    "GET /users/me": OPEN,
    # Users, groups and roles: their handlers ask.
    "GET /api/v1/users": OPEN,
    "POST /api/v1/users": _cluster(_A.CREATE_USERS),
    "PATCH /api/v1/users": _cluster(_A.ACTIVATE_USERS),
    "GET /api/v1/users/{userId}": OPEN,
    "PATCH /api/v1/users/{userId}": (
        Need(_A.ADMINISTRATE_USERS, when=_is_another),
        Need(_A.SET_PRIVILEGES, when=_sets_privileges),
        Need(_A.RENAME_USER, when=lambda call: call.body.username is not UNSET),
    ),
    "POST /api/v1/users/{userId}/password": (Need(_A.SET_OTHERS_PASSWORD, when=_is_another),),
    "POST /api/v1/users/activity": _in_body(_A.VIEW_PROJECT, _K.PROJECT, lambda call: (call.body.entity_id,)),
    "GET /api/v1/user/projects/activity": OPEN,
    "GET /api/v1/users/{username}/by-username": OPEN,
    "GET /api/v1/users/setting": OPEN,
    "POST /api/v1/users/setting": OPEN,
    "POST /api/v1/users/setting/reset": OPEN,
    "PATCH /api/v1/users/assignments": OPEN,
    "GET /api/v1/tokens": _cluster(_A.VIEW_TOKENS),
    "POST /api/v1/tokens": (
        Need(_A.CREATE_OTHERS_TOKEN, when=_is_for_another),
        Need(_A.CREATE_TOKEN, when=lambda call: not _is_for_another(call)),
    ),
    "PATCH /api/v1/tokens/{tokenId}": OPEN,
    "GET /oauth2/clients": OPEN,
    "POST /oauth2/clients": OPEN,
    "DELETE /oauth2/clients/{id}": OPEN,
    "POST /api/v1/groups": OPEN,
    "POST /api/v1/groups/search": OPEN,
    "GET /api/v1/groups/{groupId}": OPEN,
    "PUT /api/v1/groups/{groupId}": OPEN,
    "DELETE /api/v1/groups/{groupId}": OPEN,
    "GET /api/v1/permissions/summary": OPEN,
    "POST /api/v1/roles/search": OPEN,
    "POST /api/v1/roles/search/by-ids": OPEN,
    "GET /api/v1/roles/search/by-user/{userId}": OPEN,
    "GET /api/v1/roles/search/by-group/{groupId}": OPEN,
    "POST /api/v1/roles/search/by-assignability": OPEN,
    "POST /api/v1/roles/add-assignments": OPEN,
    "POST /api/v1/roles/remove-assignments": OPEN,
    "GET /api/v1/roles/workspace/{workspaceId}": OPEN,
    # Allocations, tasks and their logs.
    "GET /api/v1/allocations/{allocationId}": _VIEW_ALLOCATION,
    "GET /api/v1/allocations/{allocationId}/signals/preemption": _VIEW_ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/signals/ack_preemption": _CONTROL_ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/signals/pending_preemption": _CONTROL_ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/ready": _CONTROL_ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/waiting": _CONTROL_ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/proxy_address": _CONTROL_ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/acceleratorData": _CONTROL_ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/all_gather": _CONTROL_ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/notify_container_running": _CONTROL_ALLOCATION,
    "POST /api/v1/allocations/{allocationId}/resources/{resourcesId}/daemon": _CONTROL_ALLOCATION,
    "GET /api/v1/allocations/{allocationId}/resources/{resourcesId}/rendezvous": _VIEW_ALLOCATION,
    "GET /tasks": OPEN,
    "GET /api/v1/tasks": OPEN,
    "GET /api/v1/tasks/count": OPEN,
    "GET /api/v1/tasks/{taskId}": _VIEW_TASK,
    "GET /api/v1/tasks/{taskId}/acceleratorData": _VIEW_TASK,
    "GET /api/v1/tasks/{taskId}/config": _VIEW_TASK,
    "POST /api/v1/generic-tasks": (Need(_A.VIEW_TASK, _K.TASK, _other_tasks),),
    "POST /api/v1/tasks/{taskId}/kill": _CONTROL_TASK,
    "POST /api/v1/tasks/{taskId}/pause": _CONTROL_TASK,
    "POST /api/v1/tasks/{taskId}/unpause": _CONTROL_TASK,
    "GET /api/v1/tasks/{taskId}/context_directory": _TASK_LOGS,
    "GET /api/v1/tasks/{taskId}/logs": _TASK_LOGS,
    "GET /api/v1/tasks/{taskId}/logs/fields": _TASK_LOGS,
    "POST /api/v1/cleanup_logs": _cluster(_A.CLEAN_UP_LOGS),
    # Notebooks, TensorBoards, shells and commands.
    **{
        f"{method} /api/v1/{kind.noun}s/{{{kind.noun}Id}}{suffix}": _on(action, kind, f"{kind.noun}Id")
        for kind in (_K.COMMAND, _K.NOTEBOOK, _K.SHELL, _K.TENSORBOARD)
        for method, suffix, action in (
            ("GET", "", _A.VIEW_TASK),
            ("POST", "/kill", _A.CONTROL_TASK),
            ("POST", "/set_priority", _A.CONTROL_TASK),
        )
    },
    **{f"GET /api/v1/{noun}s": OPEN for noun in ("command", "notebook", "shell", "tensorboard")},
    **{f"POST /api/v1/{noun}s": (_template("template_name"),) for noun in ("command", "notebook", "shell")},
    "POST /api/v1/tensorboards": (
        _template("template_name"),
        Need(_A.VIEW_ARTIFACTS, _K.EXPERIMENT, lambda call: call.body.experiment_ids),
        Need(_A.VIEW_ARTIFACTS, _K.TRIAL, lambda call: call.body.trial_ids),
    ),
    "PUT /api/v1/notebooks/{notebookId}/report_idle": _on(_A.CONTROL_TASK, _K.NOTEBOOK, "notebookId"),
    # Trials, which are runs, and their metrics.
    "POST /api/v1/runs": OPEN,
    **{f"POST /api/v1/runs/{verb}": _RUNS for verb in ("archive", "unarchive", "kill", "pause", "resume", "delete")},
    "POST /api/v1/runs/move": (
        Need(_A.VIEW_PROJECT, _K.PROJECT, lambda call: (call.body.source_project_id,)),
        Need(_A.CREATE_EXPERIMENT, _K.PROJECT, lambda call: (call.body.destination_project_id,)),
    ),
    "POST /api/v1/runs/start": _in_body(_A.CONTROL_EXPERIMENT, _K.RUN, lambda call: (call.body.run_id,)),
    "GET /api/v1/runs/{runId}/metadata": _on(_A.VIEW_EXPERIMENT, _K.RUN, "runId"),
    "POST /api/v1/runs/{runId}/metadata": _on(_A.EDIT_EXPERIMENT, _K.RUN, "runId"),
    "GET /api/v1/trials/{trialId}": _VIEW_TRIAL,
    "GET /api/v1/trials/{trialId}/workloads": _VIEW_TRIAL,
    "GET /api/v1/trials/{trialId}/logs": _TRIAL_LOGS,
    "GET /api/v1/trials/{trialId}/logs/fields": _TRIAL_LOGS,
    "GET /api/v1/trials/{id}/checkpoints": _on(_A.VIEW_ARTIFACTS, _K.TRIAL, "id"),
    "GET /api/v1/trials/{id}/remaining_log_retention_days": _on(_A.VIEW_EXPERIMENT, _K.TRIAL, "id"),
    "GET /api/v1/trials/metrics/trial_metrics": _METRICS,
    "GET /api/v1/trials/metrics/training_metrics": _METRICS,
    "GET /api/v1/trials/metrics/validation_metrics": _METRICS,
    "GET /api/v1/trials/time-series": _METRICS,
    "GET /api/v1/resolute/trials/{trialId}/metric-names": _VIEW_TRIAL,
    "GET /api/v1/trials/{trialId}/profiler/available_series": _VIEW_TRIAL,
    "GET /api/v1/trials/{trialId}/profiler/metrics": _VIEW_TRIAL,
    "POST /api/v1/trials/profiler/metrics": _in_body(
        _A.CONTROL_EXPERIMENT, _K.TRIAL, lambda call: [batch.labels.trial_id for batch in call.body.batches]
    ),
    "POST /api/v1/trials/{trialId}/metrics": _CONTROL_TRIAL,
    "POST /api/v1/trials/{trialId}/training_metrics": _CONTROL_TRIAL,
    "POST /api/v1/trials/{trialId}/validation_metrics": _CONTROL_TRIAL,
    "POST /api/v1/trials/{trialId}/progress": _CONTROL_TRIAL,
    "POST /api/v1/trials/{trialId}/early_exit": _CONTROL_TRIAL,
    "POST /api/v1/trials/{trialId}/runner/metadata": _CONTROL_TRIAL,
    "POST /api/v1/trials/{id}/kill": _on(_A.CONTROL_EXPERIMENT, _K.TRIAL, "id"),
    "PUT /api/v1/trials/{trialId}/retain_logs": _CONTROL_TRIAL,
    # Those that run elsewhere, with the session of a user.
    "POST /api/v1/trials": _in_body(_A.CONTROL_EXPERIMENT, _K.EXPERIMENT, lambda call: (call.body.experiment_id,)),
    "PUT /api/v1/trials": _in_body(
        _A.CONTROL_EXPERIMENT,
        _K.EXPERIMENT,
        lambda call: (call.body.create_trial_request.experiment_id,) if call.body.create_trial_request else (),
    ),
    "PATCH /api/v1/trials/{trialId}": _CONTROL_TRIAL,
    "POST /api/v1/trials/{trialId}/start": _CONTROL_TRIAL,
    "GET /api/v1/trials/by-external-id/{externalExperimentId}/{externalTrialId}": _on(
        _A.VIEW_EXPERIMENT, _K.EXTERNAL_EXPERIMENT, "externalExperimentId"
    ),
    # Checkpoints.
    "POST /api/v1/checkpoints": (
        Need(_A.CONTROL_TASK, _K.TASK, lambda call: (call.body.task_id,), of_experiment=_A.CONTROL_EXPERIMENT),
    ),
    "PATCH /api/v1/checkpoints": _in_body(
        _A.EDIT_CHECKPOINT, _K.CHECKPOINT, lambda call: [checkpoint.uuid for checkpoint in call.body.checkpoints]
    ),
    "DELETE /api/v1/checkpoints": _CHECKPOINTS,
    "POST /api/v1/checkpoints/rm": _CHECKPOINTS,
    "GET /api/v1/checkpoints/{checkpointUuid}": _on(_A.VIEW_ARTIFACTS, _K.CHECKPOINT, "checkpointUuid"),
    "POST /api/v1/checkpoints/{checkpointUuid}/metadata": _on(_A.EDIT_CHECKPOINT, _K.CHECKPOINT, "checkpointUuid"),
    "GET /api/v1/checkpoints/{checkpointUuid}/metrics": _on(_A.VIEW_EXPERIMENT, _K.CHECKPOINT, "checkpointUuid"),
    "GET /checkpoints/{uuid}": _on(_A.VIEW_ARTIFACTS, _K.CHECKPOINT, "uuid"),
    # Experiments. Where a new one goes is in its configuration, so the handler asks.
    "POST /api/v1/experiments": _NEW_EXPERIMENT,
    "POST /api/v1/resolute/check": _NEW_EXPERIMENT,
    "POST /api/v1/resolute/check/tasks": (_template("template"),),
    "POST /api/v1/experiments/continue": (
        Need(_A.FORK_EXPERIMENT, _K.EXPERIMENT, lambda call: (call.body.id,)),
        Need(_A.CREATE_EXPERIMENT, _K.EXPERIMENT, lambda call: (call.body.id,)),
    ),
    "PUT /api/v1/experiments/by-external-id/{externalExperimentId}": _on(
        _A.CONTROL_EXPERIMENT, _K.EXTERNAL_EXPERIMENT, "externalExperimentId"
    ),
    "GET /api/v1/experiments": OPEN,
    "GET /api/v1/experiments/{experimentId}": _VIEW_EXPERIMENT,
    "PATCH /api/v1/experiments/{experiment_id}": (
        Need(
            _A.CONTROL_EXPERIMENT,
            _K.EXPERIMENT,
            _in_path(_K.EXPERIMENT, "experiment_id"),
            when=lambda call: call.body.resources is not UNSET,
        ),
        *_on(_A.EDIT_EXPERIMENT, _K.EXPERIMENT, "experiment_id"),
    ),
    "DELETE /api/v1/experiments/{experimentId}": _on(_A.DELETE_EXPERIMENT, _K.EXPERIMENT, "experimentId"),
    "GET /api/v1/experiments/{experimentId}/trials": _VIEW_EXPERIMENT,
    "GET /api/v1/experiments/{experimentId}/validation-history": _VIEW_EXPERIMENT,
    "GET /api/v1/experiments/metrics-stream/metric-names": _in_body(
        _A.VIEW_EXPERIMENT, _K.EXPERIMENT, lambda call: call.query.ids
    ),
    "GET /api/v1/experiments/{experimentId}/metrics-stream/batches": _VIEW_EXPERIMENT,
    "GET /api/v1/experiments/{experimentId}/metrics-stream/trials-sample": _VIEW_EXPERIMENT,
    "GET /api/v1/experiments/{experimentId}/metrics-stream/trials-snapshot": _VIEW_EXPERIMENT,
    "GET /api/v1/experiments/{experimentId}/searcher/best_searcher_validation_metric": _VIEW_EXPERIMENT,
    "GET /api/v1/experiments/{id}/checkpoints": _on(_A.VIEW_ARTIFACTS, _K.EXPERIMENT, "id"),
    "GET /api/v1/experiments/{experimentId}/model_def": _ARTIFACTS,
    "GET /api/v1/experiments/{experimentId}/file_tree": _ARTIFACTS,
    "POST /api/v1/experiments/{experimentId}/file": _ARTIFACTS,
    "GET /experiments/{experimentId}/model_def": _ARTIFACTS,
    "GET /experiments/{experimentId}/file/download": _ARTIFACTS,
    "GET /experiments/{experimentId}/preview_gc": _VIEW_EXPERIMENT,
    **{
        f"POST /api/v1/experiments/{{id}}/{verb}": _CONTROL_EXPERIMENT
        for verb in ("activate", "pause", "cancel", "kill")
    },
    "POST /api/v1/experiments/{id}/archive": _on(_A.EDIT_EXPERIMENT, _K.EXPERIMENT, "id"),
    "POST /api/v1/experiments/{id}/unarchive": _on(_A.EDIT_EXPERIMENT, _K.EXPERIMENT, "id"),
    "POST /api/v1/experiments/{experimentId}/move": (
        *_on(_A.MOVE_EXPERIMENT, _K.EXPERIMENT, "experimentId"),
        Need(_A.CREATE_EXPERIMENT, _K.PROJECT, lambda call: (call.body.destination_project_id,)),
    ),
    "PUT /api/v1/experiments/{experimentId}/retain_logs": _on(_A.CONTROL_EXPERIMENT, _K.EXPERIMENT, "experimentId"),
    "DELETE /api/v1/experiments/{experimentId}/tensorboard-files": _on(
        _A.DELETE_TENSORBOARD_FILES, _K.EXPERIMENT, "experimentId"
    ),
    "GET /api/v1/experiment/labels": OPEN,
    "PUT /api/v1/experiments/{experimentId}/labels/{label}": _EDIT_EXPERIMENT,
    "DELETE /api/v1/experiments/{experimentId}/labels/{label}": _EDIT_EXPERIMENT,
    "POST /api/v1/experiments-search": OPEN,
    **{
        f"POST /api/v1/projects/{{projectId}}/experiments/{verb}": _BULK
        for verb in ("activate", "pause", "cancel", "kill", "archive", "unarchive")
    },
    "DELETE /api/v1/projects/{projectId}/experiments/delete": _BULK,
    "PUT /api/v1/projects/{projectId}/experiments/retain_logs": _BULK,
    "POST /api/v1/projects/{projectId}/experiments/move": (
        *_BULK,
        Need(_A.CREATE_EXPERIMENT, _K.PROJECT, lambda call: (call.body.destination_project_id,)),
    ),
    "POST /api/v1/preview-hp-search": _cluster(_A.PREVIEW_SEARCH),
    # Templates.
    "GET /api/v1/templates": OPEN,
    "GET /api/v1/templates/{name:path}": _on(_A.VIEW_TEMPLATE, _K.TEMPLATE, "name"),
    "POST /api/v1/templates/{name:path}": _in_body(
        _A.CREATE_TEMPLATE, _K.WORKSPACE, lambda call: (call.body.workspace_id or 1,)
    ),
    "PUT /api/v1/templates/{name:path}": (
        *_on(_A.EDIT_TEMPLATE, _K.TEMPLATE, "name"),
        Need(
            _A.CREATE_TEMPLATE,
            _K.WORKSPACE,
            lambda call: (call.body.workspace_id,),
            when=lambda call: bool(call.body.workspace_id),
        ),
    ),
    "PATCH /api/v1/templates/{name:path}": _on(_A.EDIT_TEMPLATE, _K.TEMPLATE, "name"),
    "DELETE /api/v1/templates/{name:path}": _on(_A.DELETE_TEMPLATE, _K.TEMPLATE, "name"),
    "PATCH /api/v1/template/rename": _in_body(_A.EDIT_TEMPLATE, _K.TEMPLATE, lambda call: (call.body.old_name,)),
    # The queue, and what there is to run on.
    "GET /api/v1/resolute/waiting": OPEN,
    "GET /api/v1/resolute/limits": OPEN,
    "PUT /api/v1/resolute/limits": _cluster(_A.SET_LIMITS),
    "DELETE /api/v1/resolute/limits/{limitId}": _cluster(_A.SET_LIMITS),
    "GET /api/v1/resolute/shares": OPEN,
    "PUT /api/v1/resolute/shares": _cluster(_A.SET_SHARES),
    "DELETE /api/v1/resolute/shares/{shareId}": _cluster(_A.SET_SHARES),
    "GET /api/v1/resolute/maintenance": OPEN,
    "POST /api/v1/resolute/maintenance": _cluster(_A.DISABLE_AGENTS),
    "PATCH /api/v1/resolute/maintenance/{id}": _cluster(_A.DISABLE_AGENTS),
    "DELETE /api/v1/resolute/maintenance/{id}": _cluster(_A.DISABLE_AGENTS),
    "GET /api/v1/job-queues": OPEN,
    "GET /api/v1/job-queues-v2": OPEN,
    "GET /api/v1/job-queues/stats": OPEN,
    "POST /api/v1/job-queues": OPEN,
    "GET /api/v1/agents": OPEN,
    "GET /api/v1/agents/{agentId}": OPEN,
    "POST /api/v1/agents/{agentId}/disable": _cluster(_A.DISABLE_AGENTS),
    "POST /api/v1/agents/{agentId}/enable": _cluster(_A.ENABLE_AGENTS),
    "GET /api/v1/agents/{agentId}/slots": OPEN,
    "GET /api/v1/agents/{agentId}/slots/{slotId}": OPEN,
    **{
        f"POST /api/v1/agents/{{agentId}}/slots/{{slotId}}/{verb}": _cluster(_A.CONTROL_SLOTS)
        for verb in ("enable", "disable")
    },
    **{
        f"GET {path}": _cluster(_A.VIEW_USAGE)
        for path in (
            "/api/v1/resources/allocation/raw",
            "/api/v1/resources/allocation/aggregated",
            "/resources/allocation/raw",
            "/resources/allocation/allocations-csv",
            "/resources/allocation/aggregated",
        )
    },
    # Its handler asks which tasks and experiments the caller may see.
    "GET /prom/det-state-metrics": OPEN,
    "GET /prom/det-http-sd-config": _cluster(_A.VIEW_AGENT_DETAILS),
    "GET /api/v1/config-policies/global/{workloadType}": _cluster(_A.VIEW_GLOBAL_POLICIES),
    **{
        f"{method} /api/v1/config-policies/global/{{workloadType}}": _cluster(_A.EDIT_GLOBAL_POLICIES)
        for method in ("PUT", "DELETE")
    },
    "GET /api/v1/config-policies/workspaces/{workspaceId}/{workloadType}": _on(
        _A.VIEW_WORKSPACE_POLICIES, _K.WORKSPACE, "workspaceId"
    ),
    **{
        f"{method} /api/v1/config-policies/workspaces/{{workspaceId}}/{{workloadType}}": _on(
            _A.EDIT_WORKSPACE_POLICIES, _K.WORKSPACE, "workspaceId"
        )
        for method in ("PUT", "DELETE")
    },
    "GET /api/v1/resource-pools": OPEN,
    "GET /api/v1/k8s-resource-managers": OPEN,
    **{
        f"{method} /api/v1/resource-pools/{{resourcePoolName}}/workspace-bindings": _cluster(_A.BIND_POOLS)
        for method in ("POST", "PUT", "DELETE")
    },
    "GET /api/v1/resource-pools/{resourcePoolName}/workspace-bindings": _cluster(_A.VIEW_POOL_BINDINGS),
    # The registry of models, and webhooks: their handlers ask. What is registered is the caller's to read.
    **{
        f"{method} /api/v1/models{rest}": OPEN
        for method, rest in (
            ("GET", ""),
            ("POST", ""),
            ("GET", "/{modelName}"),
            ("PATCH", "/{modelName}"),
            ("DELETE", "/{modelName}"),
            ("POST", "/{modelName}/archive"),
            ("POST", "/{modelName}/unarchive"),
            ("POST", "/{modelName}/move"),
            ("GET", "/{modelName}/versions"),
            ("GET", "/{modelName}/versions/{modelVersionNum}"),
            ("PATCH", "/{modelName}/versions/{modelVersionNum}"),
            ("DELETE", "/{modelName}/versions/{modelVersionNum}"),
            ("GET", "/{modelName}/versions/{modelVersionNum}/metrics"),
        )
    },
    "GET /api/v1/model/labels": OPEN,
    "POST /api/v1/models/{modelName}/versions": _in_body(
        _A.VIEW_ARTIFACTS, _K.CHECKPOINT, lambda call: (call.body.checkpoint_uuid,)
    ),
    "POST /api/v1/trial-source-info": _in_body(
        _A.CONTROL_EXPERIMENT,
        _K.TRIAL,
        lambda call: (call.body.trial_source_info.trial_id,) if call.body.trial_source_info else (),
    ),
    "GET /api/v1/webhooks": OPEN,
    "POST /api/v1/webhooks": OPEN,
    "POST /api/v1/webhooks/custom": _in_body(
        _A.CONTROL_EXPERIMENT, _K.EXPERIMENT, lambda call: (call.body.experiment_id,)
    ),
    "PATCH /api/v1/webhooks/{id}": OPEN,
    "DELETE /api/v1/webhooks/{id}": OPEN,
    "POST /api/v1/webhooks/{id}/test": OPEN,
    "GET /api/v1/resolute/event-webhooks": OPEN,
    "POST /api/v1/resolute/event-webhooks": OPEN,
    "PATCH /api/v1/resolute/event-webhooks/{id}": OPEN,
    "DELETE /api/v1/resolute/event-webhooks/{id}": OPEN,
    "POST /api/v1/resolute/event-webhooks/{id}/test": OPEN,
    # Workspaces and projects.
    "GET /api/v1/workspaces": OPEN,
    "POST /api/v1/workspaces": (
        Need(_A.CREATE_WORKSPACE),
        Need(_A.SET_WORKSPACE_IDENTITY, when=_sets_identity),
        Need(_A.SET_WORKSPACE_STORAGE, when=_sets_storage),
        Need(_A.SET_WORKSPACE_POOLS, when=_sets_pools),
        Need(_A.BIND_NAMESPACES, when=_binds),
        Need(_A.SET_QUOTAS, when=_sets_quotas),
    ),
    "GET /api/v1/workspaces/{id}": _VIEW_WORKSPACE,
    "PATCH /api/v1/workspaces/{id}": (
        _on_workspace(_A.VIEW_WORKSPACE),
        _on_workspace(_A.EDIT_WORKSPACE, _edit_workspace),
        _on_workspace(_A.SET_WORKSPACE_IDENTITY, _sets_identity),
        _on_workspace(_A.SET_WORKSPACE_STORAGE, _sets_storage),
        _on_workspace(_A.SET_WORKSPACE_POOLS, _changes_pools),
        Need(_A.BIND_NAMESPACES, when=_binds),
        Need(_A.SET_QUOTAS, when=_sets_quotas),
    ),
    "DELETE /api/v1/workspaces/{id}": (_on_workspace(_A.DELETE_WORKSPACE),),
    "POST /api/v1/workspaces/{id}/archive": (_on_workspace(_A.ARCHIVE_WORKSPACE),),
    "POST /api/v1/workspaces/{id}/unarchive": (_on_workspace(_A.UNARCHIVE_WORKSPACE),),
    "POST /api/v1/workspaces/{id}/pin": (_on_workspace(_A.PIN_WORKSPACE),),
    "POST /api/v1/workspaces/{id}/unpin": (_on_workspace(_A.PIN_WORKSPACE),),
    "GET /api/v1/workspaces/{id}/projects": _VIEW_WORKSPACE,
    "GET /api/v1/workspaces/{workspaceId}/available-resource-pools": _on(
        _A.VIEW_WORKSPACE, _K.WORKSPACE, "workspaceId"
    ),
    "POST /api/v1/workspaces/{workspaceId}/namespace-bindings": (
        *_on(_A.VIEW_WORKSPACE, _K.WORKSPACE, "workspaceId"),
        Need(_A.BIND_NAMESPACES),
    ),
    "DELETE /api/v1/workspaces/{workspaceId}/namespace-bindings": (
        *_on(_A.VIEW_WORKSPACE, _K.WORKSPACE, "workspaceId"),
        Need(_A.BIND_NAMESPACES),
    ),
    "GET /api/v1/workspaces/{id}/list-namespace-bindings": _VIEW_WORKSPACE,
    "POST /api/v1/workspaces/{id}/set-resource-quota": (_on_workspace(_A.VIEW_WORKSPACE), Need(_A.SET_QUOTAS)),
    "GET /api/v1/workspaces/{id}/get-k8s-resource-quotas": (_on_workspace(_A.VIEW_QUOTAS),),
    "GET /api/v1/namespace-bindings/workspace-ids-with-default-bindings": _cluster(_A.VIEW_UNBOUND_WORKSPACES),
    "POST /api/v1/namespace-bindings/bulk-auto-create": _cluster(_A.BIND_NAMESPACES),
    "POST /api/v1/workspaces/{workspaceId}/projects": _on(_A.CREATE_PROJECT, _K.WORKSPACE, "workspaceId"),
    "GET /api/v1/projects/{id}": _VIEW_PROJECT,
    "GET /api/v1/projects/key/{key}": _on(_A.VIEW_PROJECT, _K.PROJECT_KEY, "key"),
    "GET /api/v1/projects/{id}/columns": _VIEW_PROJECT,
    "GET /api/v1/projects/{id}/experiments/metric-ranges": _VIEW_PROJECT,
    "GET /api/v1/projects/{projectId}/metadata/{key}": _on(_A.VIEW_PROJECT, _K.PROJECT, "projectId"),
    "PATCH /api/v1/projects/{id}": _EDIT_PROJECT,
    "DELETE /api/v1/projects/{id}": _on(_A.DELETE_PROJECT, _K.PROJECT, "id"),
    "POST /api/v1/projects/{id}/archive": _EDIT_PROJECT,
    "POST /api/v1/projects/{id}/unarchive": _EDIT_PROJECT,
    "POST /api/v1/projects/{projectId}/move": (
        *_on(_A.MOVE_PROJECT, _K.PROJECT, "projectId"),
        Need(_A.CREATE_PROJECT, _K.WORKSPACE, lambda call: (call.body.destination_workspace_id,)),
    ),
    "POST /api/v1/projects/{projectId}/notes": _on(_A.NOTE_IN_PROJECT, _K.PROJECT, "projectId"),
    "PUT /api/v1/projects/{projectId}/notes": _on(_A.NOTE_IN_PROJECT, _K.PROJECT, "projectId"),
}
