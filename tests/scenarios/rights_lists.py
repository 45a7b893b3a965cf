"""Every list of the REST interface as a row: how it is asked for, and by which call each thing in it can be had alone.

Somebody with roles is shown of a list what that call gives them, and the list counts nothing else
(docs/reference/platform.md 6). Calls that answer with several things without being a list of objects are in
``NO_LISTS``, each with the reason; a test compares both with the table of routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class RightsList:
    """One row.

    call      as in the table of routes
    items     what is in an answer
    alone     the call that gives one item alone, with its body behind it; None for an item that only says that
              something is there, which everybody may know
    each      kind of the objects that the list is asked of, one by one; such an object has its place in ``path``
    path      where it differs from the call's own: what has to be asked for to get everything
    body      of a POST, without the page
    paged     whether it takes ``offset`` and ``limit``
    complete  whether it shows everything that can be had alone, of what administrators are shown
    """

    call: str
    items: Callable[[Any], Iterable[Any]]
    alone: Callable[[Any], str | None]
    each: str | None = None
    path: str = ""
    body: Mapping[str, Any] | None = None
    paged: bool = True
    complete: bool = True

    @property
    def method(self) -> str:
        return self.call.partition(" ")[0]

    @property
    def address(self) -> str:
        return self.path or self.call.partition(" ")[2]


def _in(name: str) -> Callable[[Any], Iterable[Any]]:
    return lambda reply: reply[name]


def _by(path: str, *keys: str) -> Callable[[Any], str]:
    """GET of a path with a key of the item in it."""

    def alone(item: Any) -> str:
        for key in keys:
            item = item[key]
        return f"GET {path.format(item)}"

    return alone


def _job(job: Any) -> str:
    kind = "experiments" if job["type"] == "TYPE_EXPERIMENT" else "tasks"
    return f"GET /api/v1/{kind}/{job['entityId']}"


def _assigned(reply: Any) -> Iterable[Any]:
    """Assignments in workspaces, of roles with all of theirs."""
    for role in reply["roles"] if "roles" in reply else reply["assignments"]:
        for kind in ("groupRoleAssignments", "userRoleAssignments"):
            yield from (a["roleAssignment"] for a in role[kind] if "scopeWorkspaceId" in a["roleAssignment"])


def _scopes(reply: Any) -> Iterable[Any]:
    return (scope for each in reply["assignments"] for scope in each["scopeWorkspaceIds"])


_EXPERIMENT, _TRIAL, _TASK = "/api/v1/experiments/{}", "/api/v1/trials/{}", "/api/v1/tasks/{}"
_WORKSPACE, _PROJECT, _CHECKPOINT = "/api/v1/workspaces/{}", "/api/v1/projects/{}", "/api/v1/checkpoints/{}"
_ROLE_IDS: Final = '{{"roleIds": [{roleId}]}}'

LISTS: Final = (
    RightsList("GET /api/v1/workspaces", _in("workspaces"), _by(_WORKSPACE, "id")),
    RightsList(
        "GET /api/v1/workspaces/{id}/projects",
        _in("projects"),
        _by(_PROJECT, "id"),
        path="/api/v1/workspaces/0/projects",
    ),
    RightsList("GET /api/v1/workspaces/{id}/projects", _in("projects"), _by(_PROJECT, "id"), each="workspace"),
    RightsList("GET /api/v1/user/projects/activity", _in("projects"), _by(_PROJECT, "id"), paged=False),
    RightsList("GET /api/v1/experiments", _in("experiments"), _by(_EXPERIMENT, "id")),
    RightsList("POST /api/v1/experiments-search", _in("experiments"), _by(_EXPERIMENT, "experiment", "id"), body={}),
    RightsList("POST /api/v1/runs", _in("runs"), _by(_TRIAL, "id"), body={}),
    # Each is labelled with its own number.
    RightsList("GET /api/v1/experiment/labels", _in("labels"), _by(_EXPERIMENT), paged=False),
    RightsList("GET /api/v1/experiments/{experimentId}/trials", _in("trials"), _by(_TRIAL, "id"), each="experiment"),
    RightsList(
        "GET /api/v1/experiments/{id}/checkpoints", _in("checkpoints"), _by(_CHECKPOINT, "uuid"), each="experiment"
    ),
    RightsList("GET /api/v1/trials/{id}/checkpoints", _in("checkpoints"), _by(_CHECKPOINT, "uuid"), each="trial"),
    *(
        RightsList(f"GET /api/v1/{noun}s", _in(f"{noun}s"), _by(f"/api/v1/{noun}s/{{}}", "id"))
        for noun in ("command", "notebook", "shell", "tensorboard")
    ),
    RightsList(
        "GET /api/v1/tasks", lambda reply: reply["allocationIdToSummary"].values(), _by(_TASK, "taskId"), paged=False
    ),
    RightsList("GET /tasks", lambda reply: reply.values(), _by(_TASK, "taskId"), paged=False),
    RightsList("GET /api/v1/resolute/waiting", _in("waiting"), _by("/api/v1/allocations/{}", "allocationId")),
    RightsList("GET /api/v1/job-queues", _in("jobs"), _job, path="/api/v1/job-queues?resourcePool=cpus"),
    RightsList(
        "GET /api/v1/job-queues-v2",
        _in("jobs"),
        lambda job: _job(job["full"]) if "full" in job else None,
        path="/api/v1/job-queues-v2?resourcePool=cpus",
    ),
    RightsList("GET /api/v1/templates", _in("templates"), _by("/api/v1/templates/{}", "name")),
    RightsList("GET /api/v1/models", _in("models"), _by("/api/v1/models/{}", "name")),
    # Each is labelled with its own name.
    RightsList("GET /api/v1/model/labels", _in("labels"), _by("/api/v1/models/{}"), paged=False),
    RightsList(
        "GET /api/v1/models/{modelName}/versions",
        _in("modelVersions"),
        lambda item: f"GET /api/v1/models/{item['model']['name']}/versions/{item['version']}",
        each="model",
    ),
    # They cannot be had alone, but changed, which says 403 to those who may only look.
    RightsList(
        "GET /api/v1/webhooks",
        _in("webhooks"),
        lambda item: f'PATCH /api/v1/webhooks/{item["id"]} {{"url": "{item["url"]}"}}',
        paged=False,
    ),
    RightsList("GET /api/v1/users", _in("users"), _by("/api/v1/users/{}", "id")),
    RightsList("POST /api/v1/groups/search", _in("groups"), _by("/api/v1/groups/{}", "group", "groupId"), body={}),
    RightsList(
        "POST /api/v1/roles/search",
        _in("roles"),
        lambda role: "POST /api/v1/roles/search/by-ids " + _ROLE_IDS.format(**role),
        body={},
    ),
    RightsList(
        "GET /api/v1/roles/workspace/{workspaceId}",
        _assigned,
        _by(_WORKSPACE, "scopeWorkspaceId"),
        each="workspace",
        paged=False,
    ),
    # Without a right to look at roles of others there is nothing; with it, what is in workspaces that are shown. What
    # somebody has, alone or in a group, they are told whatever it lets them see.
    RightsList(
        "GET /api/v1/roles/search/by-user/{userId}",
        _assigned,
        _by(_WORKSPACE, "scopeWorkspaceId"),
        each="user",
        paged=False,
        complete=False,
    ),
    RightsList(
        "GET /api/v1/roles/search/by-group/{groupId}",
        _scopes,
        _by(_WORKSPACE),
        each="group of others",
        paged=False,
        complete=False,
    ),
    RightsList(
        "POST /api/v1/roles/search/by-ids",
        _assigned,
        _by(_WORKSPACE, "scopeWorkspaceId"),
        body={"roleIds": [4]},
        paged=False,
        complete=False,
    ),
)

_OF_ONE: Final = "tells of the one object that it names, for whoever may see that"
_OWN: Final = "the caller's own"
_OF_CLUSTER: Final = "for everybody: what the cluster is made of"
_ALL_OR_NOTHING: Final = "of everything there is, for those who may read all of that; others are refused"
_PAGE: Final = "no object of the system"

NO_LISTS: Final[Mapping[str, str]] = {
    "POST /api/v1/resolute/check": "changes of a configuration that nobody has submitted",
    "POST /api/v1/resolute/check/tasks": "changes of a configuration that nobody has submitted",
    "GET /api/v1/tasks/{taskId}/acceleratorData": _OF_ONE,
    "GET /api/v1/config-policies/workspaces/{workspaceId}/{workloadType}": _OF_ONE,
    "GET /api/v1/experiments/{experimentId}": _OF_ONE,
    "GET /api/v1/experiments/{experimentId}/validation-history": _OF_ONE,
    "GET /api/v1/experiments/{experimentId}/file_tree": _OF_ONE,
    "GET /api/v1/experiments/{experimentId}/metrics-stream/batches": _OF_ONE,
    "GET /api/v1/experiments/{experimentId}/metrics-stream/trials-snapshot": _OF_ONE,
    "GET /api/v1/experiments/{experimentId}/metrics-stream/trials-sample": _OF_ONE,
    "GET /api/v1/experiments/metrics-stream/metric-names": _OF_ONE,
    **{f"GET /api/v1/{noun}s/{{{noun}Id}}": _OF_ONE for noun in ("command", "notebook", "shell", "tensorboard")},
    "GET /api/v1/trials/metrics/trial_metrics": _OF_ONE,
    "GET /api/v1/trials/metrics/training_metrics": _OF_ONE,
    "GET /api/v1/trials/metrics/validation_metrics": _OF_ONE,
    "GET /api/v1/trials/time-series": _OF_ONE,
    "GET /api/v1/resolute/trials/{trialId}/metric-names": _OF_ONE,
    "GET /api/v1/trials/{trialId}/workloads": _OF_ONE,
    "GET /api/v1/trials/{trialId}/profiler/available_series": _OF_ONE,
    "GET /api/v1/trials/{trialId}/logs/fields": _OF_ONE,
    "GET /api/v1/tasks/{taskId}/logs/fields": _OF_ONE,
    "GET /api/v1/runs/{runId}/metadata": _OF_ONE,
    "GET /api/v1/checkpoints/{checkpointUuid}/metrics": _OF_ONE,
    "GET /api/v1/models/{modelName}/versions/{modelVersionNum}/metrics": _OF_ONE,
    "GET /api/v1/projects/{id}/columns": _OF_ONE,
    "GET /api/v1/projects/{id}/experiments/metric-ranges": _OF_ONE,
    "GET /api/v1/projects/{projectId}/metadata/{key}": _OF_ONE,
    "GET /api/v1/workspaces/{id}/list-namespace-bindings": _OF_ONE,
    "GET /api/v1/workspaces/{id}/get-k8s-resource-quotas": _OF_ONE,
    "GET /api/v1/workspaces/{workspaceId}/available-resource-pools": _OF_ONE,
    "GET /experiments/{experimentId}/model_def": _OF_ONE,
    "GET /experiments/{experimentId}/file/download": _OF_ONE,
    "GET /experiments/{experimentId}/preview_gc": _OF_ONE,
    "GET /api/v1/allocations/{allocationId}/resources/{resourcesId}/rendezvous": _OF_ONE,
    "GET /api/v1/tasks/{taskId}/context_directory": _OF_ONE,
    "GET /checkpoints/{uuid}": _OF_ONE,
    "GET /api/v1/permissions/summary": _OWN,
    "GET /api/v1/users/setting": _OWN,
    "GET /api/v1/tokens": "the caller's own, or for those who may see all of them those of a user",
    "GET /stream": "follows lists of its own, which tests of updates compare with what may be seen",
    "GET /api/v1/resource-pools": "pools cannot be had alone; those of workspaces have a test of their own",
    "POST /api/v1/roles/search/by-assignability": "which roles there are",
    "GET /api/v1/agents": _OF_CLUSTER,
    "GET /api/v1/agents/{agentId}/slots": _OF_CLUSTER,
    "GET /api/v1/job-queues/stats": _OF_CLUSTER,
    "GET /api/v1/resolute/maintenance": _OF_CLUSTER,
    "GET /api/v1/k8s-resource-managers": _OF_CLUSTER,
    "GET /api/v1/master": _OF_CLUSTER,
    "GET /info": _OF_CLUSTER,
    "GET /api/v1/master/config": _ALL_OR_NOTHING,
    "GET /api/v1/resolute/audit": _ALL_OR_NOTHING,
    "GET /api/v1/resolute/event-webhooks": _ALL_OR_NOTHING,
    "GET /api/v1/resolute/limits": "limits cannot be had alone; whom each is shown to has a test of its own",
    "GET /api/v1/resolute/shares": "weights cannot be had alone; whom each is shown to has a test of its own",
    "GET /api/v1/config-policies/global/{workloadType}": _ALL_OR_NOTHING,
    "GET /api/v1/namespace-bindings/workspace-ids-with-default-bindings": _ALL_OR_NOTHING,
    "GET /api/v1/resource-pools/{resourcePoolName}/workspace-bindings": _ALL_OR_NOTHING,
    "GET /api/v1/resources/allocation/raw": _ALL_OR_NOTHING,
    "GET /api/v1/resources/allocation/aggregated": _ALL_OR_NOTHING,
    "GET /resources/allocation/raw": _ALL_OR_NOTHING,
    "GET /resources/allocation/aggregated": _ALL_OR_NOTHING,
    "GET /resources/allocation/allocations-csv": _ALL_OR_NOTHING,
    "GET /prom/det-http-sd-config": _ALL_OR_NOTHING,
    "GET /prom/det-state-metrics": "in the text format of Prometheus, whose test asks for it with roles",
    "GET /oauth2/clients": _ALL_OR_NOTHING,
    "GET /scim/v2/Users": "for providers of identities, who are no users",
    "GET /scim/v2/Users/{id}": "for providers of identities, who are no users",
    "GET /scim/v2/Groups": "for providers of identities, who are no users",
    "GET /scim/v2/Groups/{id}": "for providers of identities, who are no users",
    "GET /scim/v2/ServiceProviderConfig": _PAGE,
    "GET /scim/v2/ResourceTypes": _PAGE,
    "GET /scim/v2/ResourceTypes/{id}": _PAGE,
    "GET /scim/v2/Schemas": _PAGE,
    "GET /scim/v2/Schemas/{id}": _PAGE,
    "GET /": _PAGE,
    "GET /det": _PAGE,
    "GET /det/{rest:path}": _PAGE,
    "GET /det/login": _PAGE,
    "GET /det/interactive/{rest:path}": _PAGE,
    "GET /det/wait/{rest:path}": _PAGE,
    "GET /oidc/sso": _PAGE,
    "GET /oidc/callback": _PAGE,
    "GET /oauth2/authorize": _PAGE,
}
"""Call -> why it is no list of objects."""
