"""The matrix of rights as rows: for each action a call that is it, and who may make it (docs/reference/platform.md 6).

Under ``basic`` the callers are an administrator, the owner of the objects, the owner of the workspace that they are
in, and somebody else; under ``rbac`` one user
with each role, by its number (docs/reference/platform.md 5.3), and one with none, 0. Roles that can be given in a
workspace are given in that of the object. Who is neither in ``rbac`` nor in ``seen`` finds nothing there (404); who is
in ``seen`` only may not (403).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

ADMIN, OWNER, PARENT, OTHER = "administrator", "owner", "owner of the workspace", "other"
EVERYBODY: Final = frozenset({ADMIN, OWNER, PARENT, OTHER})
OWNERS: Final = frozenset({ADMIN, OWNER})
PARENTS: Final = frozenset({ADMIN, PARENT})
OWNERS_OR_PARENTS: Final = OWNERS | PARENTS
ADMINS: Final = frozenset({ADMIN})

LOCAL_ROLES: Final = (2, 4, 5, 6, 7, 9)
CLUSTER_ROLES: Final = (1, 3, 8, 10)
NO_ROLE: Final = 0
ALL_ROLES: Final = frozenset({NO_ROLE, *LOCAL_ROLES, *CLUSTER_ROLES})
READERS: Final = frozenset({1, 2, 4, 5, 7, 8, 9})
MODEL_READERS: Final = READERS | {6}
EDITORS: Final = frozenset({1, 2, 5, 7, 8, 9})
TASK_EDITORS: Final = frozenset({1, 2, 5, 8, 9})
EVERYWHERE: Final = frozenset(CLUSTER_ROLES)
# Those who may do it in the workspace of the object, with roles there, find nothing in another one.
LOOKERS: Final = READERS - EDITORS
NOBODY: Final = frozenset[int]()


@dataclass(frozen=True)
class Right:
    """One row. ``path`` names objects in braces; what is no action on an object is refused with 403.

    Where the answer has a result for each of many, that is what says so.
    """

    action: str
    method: str
    path: str
    basic: frozenset[str]
    rbac: frozenset[int]
    seen: frozenset[int] = ALL_ROLES
    body: Any = None


_W, _P, _E = "/api/v1/workspaces/{workspace}", "/api/v1/projects/{project}", "/api/v1/experiments/{experiment}"
_N, _T = "/api/v1/commands/{command}", "/api/v1/templates/{template}"
_M, _C = "/api/v1/models/{model}", "/api/v1/config-policies"
_OWN_POLICIES: Final = f"{_C}/workspaces/{{workspace}}/EXPERIMENT"
_POLICIES: Final = {"configPolicies": "constraints: {{resources: {{max_slots: 8}}}}"}
_STORAGE: Final = {"checkpointStorageConfig": {"type": "directory", "container_path": "/tmp/c"}}
_WEBHOOK: Final = {
    "name": "new-{nonce}",
    "url": "https://example.org",
    "webhookType": "WEBHOOK_TYPE_DEFAULT",
    "workspaceId": "{workspace}",
    "mode": "WEBHOOK_MODE_WORKSPACE",
    "triggers": [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}],
}
_USAGE: Final = "/resources/allocation/raw?timestamp_after=2026-01-01T00:00:00Z&timestamp_before=2026-01-02T00:00:00Z"
_RENAMED: Final = {"name": "renamed-{nonce}"}
_WEIGHT: Final = {"scope": "user", "name": "admin", "weight": 2}
_OF_WORKSPACE: Final = {"name": "made-{nonce}", "workspaceName": "w{nonce}"}
_G, _NEW_T = "/api/v1/tasks/{generic}", "/api/v1/templates/new-{nonce}"
_POOL: Final = "/api/v1/resource-pools/cpus"
_GENERIC: Final = {"projectId": "{project}", "config": "entrypoint: ['true']", "contextDirectory": []}
_VERSION, _OTHERS = {"checkpointUuid": "{checkpoint}"}, {"checkpointUuid": "{foreign_checkpoint}"}
_MOVE: Final = {"destinationWorkspaceId": "{foreign}"}
_BINDING: Final = {"workspaceIds": ["{workspace}"]}
# Refused for what it says, by whoever may do it: no search becomes another one.
_CONTINUED: Final = {"id": "{experiment}", "overrideConfig": "searcher: {{name: random}}"}
_MANY: Final = "/api/v1/projects/-1/experiments"
_EXPERIMENTS, _RUNS = {"experimentIds": ["{experiment}"]}, {"runIds": ["{trial}"]}
_TO_SIBLING: Final = {"sourceProjectId": "{project}", "destinationProjectId": "{sibling}"}
_U, _OTHERS_TOKEN = "/api/v1/users/{user}", "/api/v1/tokens/{others_token}"
_MESSAGE, _NAMESPACES = "/api/v1/master/cluster_message", "/api/v1/namespace-bindings"
_IDENTITY: Final = {"agentUid": 1, "agentGid": 1, "agentUser": "u", "agentGroup": "g"}

RIGHTS: Final = (
    Right("view workspace", "GET", _W, EVERYBODY, READERS, READERS),
    Right("rename workspace", "PATCH", _W, PARENTS, frozenset({1, 2}), READERS, _RENAMED),
    Right("set storage of workspace", "PATCH", _W, PARENTS, frozenset({1, 2}), READERS, _STORAGE),
    Right("set pool of workspace", "PATCH", _W, EVERYBODY, frozenset({1, 2}), READERS, {"defaultComputePool": "cpus"}),
    Right("archive workspace", "POST", f"{_W}/archive", PARENTS, frozenset({1, 2}), READERS),
    Right("unarchive workspace", "POST", f"{_W}/unarchive", PARENTS, frozenset({1, 2}), READERS),
    Right("delete workspace", "DELETE", _W, PARENTS, frozenset({1, 2}), READERS),
    Right("pin workspace", "POST", f"{_W}/pin", EVERYBODY, READERS, READERS),
    Right("view members", "GET", "/api/v1/roles/workspace/{workspace}", EVERYBODY, ALL_ROLES),
    Right("view project", "GET", _P, EVERYBODY, READERS, READERS),
    Right("create project", "POST", f"{_W}/projects", EVERYBODY, frozenset({1, 2, 5, 7, 8}), READERS, _RENAMED),
    Right("edit project", "PATCH", _P, OWNERS_OR_PARENTS, frozenset({1, 2, 5, 7, 8}), READERS, _RENAMED),
    *(
        Right(f"{verb} project", "POST", f"{_P}/{verb}", OWNERS_OR_PARENTS, frozenset({1, 2, 5, 7, 8}), READERS)
        for verb in ("archive", "unarchive")
    ),
    Right("move project", "POST", f"{_P}/move", OWNERS, frozenset({1, 8}), frozenset({4, 5, 7, 9}), _MOVE),
    Right("delete project", "DELETE", _P, OWNERS_OR_PARENTS, frozenset({1, 2, 8}), READERS),
    Right("add note", "POST", f"{_P}/notes", EVERYBODY, frozenset({1, 2, 5, 7, 8}), READERS, {"name": "n"}),
    Right("view experiment", "GET", _E, EVERYBODY, READERS, READERS),
    Right("list trials", "GET", f"{_E}/trials", EVERYBODY, READERS, READERS),
    Right("list checkpoints", "GET", f"{_E}/checkpoints", EVERYBODY, READERS, READERS),
    Right("read model definition", "GET", f"{_E}/file_tree", EVERYBODY, READERS, READERS),
    Right("view trial", "GET", "/api/v1/trials/{trial}", EVERYBODY, READERS, READERS),
    Right("kill experiment", "POST", f"{_E}/kill", EVERYBODY, EDITORS, READERS),
    Right("archive experiment", "POST", f"{_E}/archive", EVERYBODY, EDITORS, READERS),
    Right("edit experiment", "PATCH", _E, EVERYBODY, EDITORS, READERS, {"notes": "n"}),
    Right("delete experiment", "DELETE", _E, OWNERS, EDITORS, READERS),
    Right("delete experiment without its files", "DELETE", f"{_E}?force=true", ADMINS, frozenset({1}), READERS),
    Right("move experiment", "POST", f"{_E}/move", OWNERS, EDITORS, READERS, _TO_SIBLING),
    Right("delete TensorBoard files", "DELETE", f"{_E}/tensorboard-files", OWNERS, EDITORS, READERS),
    Right(
        "continue experiment",
        "POST",
        "/api/v1/experiments/continue",
        EVERYBODY,
        EDITORS,
        READERS,
        _CONTINUED,
    ),
    *(
        Right(f"{verb} experiments", "POST", f"{_MANY}/{verb}", EVERYBODY, EDITORS, READERS, _EXPERIMENTS)
        for verb in ("archive", "unarchive", "kill", "pause", "cancel")
    ),
    Right("delete experiments", "DELETE", f"{_MANY}/delete", OWNERS, EDITORS, READERS, _EXPERIMENTS),
    Right("move experiments", "POST", f"{_MANY}/move", OWNERS, EDITORS, READERS, {**_EXPERIMENTS, **_TO_SIBLING}),
    *(
        Right(f"{verb} run", "POST", f"/api/v1/runs/{verb}", EVERYBODY, EDITORS, READERS, _RUNS)
        for verb in ("archive", "unarchive", "kill", "pause", "resume")
    ),
    Right("delete run", "POST", "/api/v1/runs/delete", OWNERS, EDITORS, READERS, _RUNS),
    Right("move run", "POST", "/api/v1/runs/move", OWNERS, EDITORS, READERS, {**_RUNS, **_TO_SIBLING}),
    Right("view command", "GET", _N, EVERYBODY, READERS, READERS),
    Right("kill command", "POST", f"{_N}/kill", EVERYBODY, frozenset({1, 2, 5, 8, 9}), READERS),
    Right("view task", "GET", "/api/v1/tasks/{command}", EVERYBODY, READERS, READERS),
    Right("read log", "GET", "/api/v1/tasks/{command}/logs", EVERYBODY, READERS, READERS),
    Right("create generic task", "POST", "/api/v1/generic-tasks", EVERYBODY, TASK_EDITORS, READERS, _GENERIC),
    Right("view configuration of generic task", "GET", f"{_G}/config", EVERYBODY, READERS, READERS),
    Right("kill generic task", "POST", f"{_G}/kill", EVERYBODY, TASK_EDITORS, READERS, {}),
    Right("pause generic task", "POST", f"{_G}/pause", EVERYBODY, TASK_EDITORS, READERS),
    Right("unpause generic task", "POST", f"{_G}/unpause", EVERYBODY, TASK_EDITORS, READERS),
    Right("view template", "GET", _T, EVERYBODY, READERS, READERS),
    Right("edit template", "PATCH", _T, EVERYBODY, EDITORS, READERS, {"a": 1}),
    Right("delete template", "DELETE", _T, EVERYBODY, EDITORS, READERS),
    Right("create template", "POST", _NEW_T, EVERYBODY, EDITORS, READERS, {"workspaceId": "{workspace}"}),
    Right("put template", "PUT", _T, EVERYBODY, EDITORS, READERS, {"config": {}}),
    Right("move template", "PUT", _T, EVERYBODY, EDITORS & EVERYWHERE, LOOKERS, {"workspaceId": "{foreign}"}),
    Right("view model", "GET", _M, EVERYBODY, MODEL_READERS, MODEL_READERS),
    Right("list versions", "GET", f"{_M}/versions", EVERYBODY, MODEL_READERS, MODEL_READERS),
    Right("edit model", "PATCH", _M, EVERYBODY, EDITORS, MODEL_READERS, {"notes": "n"}),
    Right("archive model", "POST", f"{_M}/archive", EVERYBODY, EDITORS, MODEL_READERS),
    Right("create model", "POST", "/api/v1/models", EVERYBODY, EDITORS, READERS, _OF_WORKSPACE),
    Right("register version", "POST", f"{_M}/versions", EVERYBODY, EDITORS, READERS, _VERSION),
    Right("register version of another's", "POST", f"{_M}/versions", EVERYBODY, EDITORS & EVERYWHERE, NOBODY, _OTHERS),
    Right("move model", "POST", f"{_M}/move", EVERYBODY, EDITORS & EVERYWHERE, NOBODY, _MOVE),
    Right("delete model", "DELETE", _M, OWNERS, EDITORS, MODEL_READERS),
    Right("list webhooks", "GET", "/api/v1/webhooks", EVERYBODY, ALL_ROLES),
    Right("create webhook", "POST", "/api/v1/webhooks", PARENTS, frozenset({1, 2, 5, 7, 9}), READERS, _WEBHOOK),
    Right("list webhooks of events", "GET", "/api/v1/resolute/event-webhooks", ADMINS, frozenset({1})),
    Right("view policies", "GET", _OWN_POLICIES, EVERYBODY, READERS, READERS),
    Right("set policies", "PUT", _OWN_POLICIES, PARENTS, frozenset({1, 2}), READERS, _POLICIES),
    Right("delete policies", "DELETE", _OWN_POLICIES, PARENTS, frozenset({1, 2}), READERS),
    Right("set policies of all", "PUT", f"{_C}/global/EXPERIMENT", ADMINS, frozenset({1}), body=_POLICIES),
    Right("delete policies of all", "DELETE", f"{_C}/global/EXPERIMENT", ADMINS, frozenset({1})),
    Right("read usage", "GET", _USAGE, EVERYBODY, frozenset({1})),
    Right("bind pool", "POST", f"{_POOL}/workspace-bindings", ADMINS, frozenset({1}), body=_BINDING),
    Right("list users", "GET", "/api/v1/users", EVERYBODY, ALL_ROLES),
    Right(
        "create user",
        "POST",
        "/api/v1/users",
        ADMINS,
        frozenset({1}),
        body={"user": {"username": "made-{nonce}", "active": True}},
    ),
    Right("create group", "POST", "/api/v1/groups", ADMINS, frozenset({1}), body=_RENAMED),
    Right("activate users", "PATCH", "/api/v1/users", ADMINS, frozenset({1}), body={"userIds": [2], "activate": True}),
    Right("rename another", "PATCH", _U, ADMINS, frozenset({1}), body={"displayName": "display-{nonce}"}),
    Right("make administrator", "PATCH", _U, ADMINS, frozenset({1}), body={"admin": False}),
    Right("set another's password", "POST", f"{_U}/password", ADMINS, frozenset({1}), body="x"),
    Right("list tokens of another", "GET", "/api/v1/tokens?username=admin", ADMINS, frozenset({1})),
    Right("create token", "POST", "/api/v1/tokens", ADMINS, frozenset({1, 10}), body={}),
    Right("create token of another", "POST", "/api/v1/tokens", ADMINS, frozenset({1}), body={"userId": "{user}"}),
    Right("edit token", "PATCH", "/api/v1/tokens/{token}", ADMINS, frozenset({1, 10}), body={"description": "d"}),
    Right("revoke token", "PATCH", "/api/v1/tokens/{token}", ADMINS, frozenset({1, 10}), body={"setRevoked": True}),
    Right("edit token of another", "PATCH", _OTHERS_TOKEN, ADMINS, frozenset({1}), body={"description": "d"}),
    Right("revoke token of another", "PATCH", _OTHERS_TOKEN, ADMINS, frozenset({1}), body={"setRevoked": True}),
    Right("view message", "GET", _MESSAGE, ADMINS, frozenset({1})),
    Right("set message", "PUT", _MESSAGE, ADMINS, frozenset({1}), body={"message": "m"}),
    Right("clear message", "DELETE", _MESSAGE, ADMINS, frozenset({1})),
    Right("list bindings of pool", "GET", f"{_POOL}/workspace-bindings", EVERYBODY, frozenset({1})),
    Right("set identity of workspace", "PATCH", _W, ADMINS, frozenset({1}), READERS, {"agentUserGroup": _IDENTITY}),
    Right("bind namespace", "POST", f"{_W}/namespace-bindings", ADMINS, frozenset({1}), READERS, {}),
    Right("set quota", "POST", f"{_W}/set-resource-quota", ADMINS, frozenset({1}), READERS, {}),
    Right("bind all namespaces", "POST", f"{_NAMESPACES}/bulk-auto-create", ADMINS, frozenset({1}), body={}),
    Right("change log level", "PATCH", "/api/v1/master/config", ADMINS, frozenset({1}), body={}),
    Right("view master configuration", "GET", "/api/v1/master/config", ADMINS, frozenset({1})),
    Right("read audit log", "GET", "/api/v1/resolute/audit", ADMINS, frozenset({1})),
    Right("set limit", "PUT", "/api/v1/resolute/limits", ADMINS, frozenset({1}), body={"scope": "user", "slots": 9}),
    Right("list limits", "GET", "/api/v1/resolute/limits", EVERYBODY, ALL_ROLES),
    Right("set weight", "PUT", "/api/v1/resolute/shares", ADMINS, frozenset({1}), body=_WEIGHT),
    Right("list weights", "GET", "/api/v1/resolute/shares", EVERYBODY, ALL_ROLES),
    Right("find agents to scrape", "GET", "/prom/det-http-sd-config", EVERYBODY, frozenset({1})),
    Right("disable agent", "POST", "/api/v1/agents/{agent}/disable", ADMINS, frozenset({1})),
    Right("enable agent", "POST", "/api/v1/agents/{agent}/enable", ADMINS, frozenset({1})),
    Right("list jobs", "GET", "/api/v1/job-queues-v2", EVERYBODY, ALL_ROLES),
    Right("list own tokens", "GET", "/api/v1/tokens", EVERYBODY, frozenset({1, 10})),
    Right("preview search", "POST", "/api/v1/preview-hp-search", EVERYBODY, EDITORS),
    # The last: whoever makes a workspace is given a role in it.
    Right("create workspace", "POST", "/api/v1/workspaces", EVERYBODY, frozenset({1, 3, 8}), body=_RENAMED),
)
