"""The matrix of rights as rows: for each action a call that is it, and who may make it (docs/reference/platform.md 6).

Under ``basic`` the callers are an administrator, the owner of the objects, and somebody else; under ``rbac`` one user
with each role, by its number (docs/reference/platform.md 5.3), and one with none, 0. Roles that can be given in a
workspace are given in that of the object. Who is neither in ``rbac`` nor in ``seen`` finds nothing there (404); who is
in ``seen`` only may not (403).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

ADMIN, OWNER, OTHER = "administrator", "owner", "other"
EVERYBODY: Final = frozenset({ADMIN, OWNER, OTHER})
OWNERS: Final = frozenset({ADMIN, OWNER})
ADMINS: Final = frozenset({ADMIN})

LOCAL_ROLES: Final = (2, 4, 5, 6, 7, 9)
CLUSTER_ROLES: Final = (1, 3, 8, 10)
NO_ROLE: Final = 0
ALL_ROLES: Final = frozenset({NO_ROLE, *LOCAL_ROLES, *CLUSTER_ROLES})
READERS: Final = frozenset({1, 2, 4, 5, 7, 8, 9})
MODEL_READERS: Final = READERS | {6}
EDITORS: Final = frozenset({1, 2, 5, 7, 8, 9})


@dataclass(frozen=True)
class Right:
    """One row. ``path`` names objects in braces; what is no action on an object is refused with 403."""

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
_USAGE: Final = "/resources/allocation/raw?timestamp_after=2026-01-01T00:00:00Z&timestamp_before=2026-01-02T00:00:00Z"
_RENAMED: Final = {"name": "renamed-{nonce}"}
_OF_WORKSPACE: Final = {"name": "made-{nonce}", "workspaceName": "w{nonce}"}

RIGHTS: Final = (
    Right("view workspace", "GET", _W, EVERYBODY, READERS, READERS),
    Right("rename workspace", "PATCH", _W, OWNERS, frozenset({1, 2}), READERS, _RENAMED),
    Right("archive workspace", "POST", f"{_W}/archive", OWNERS, frozenset({1, 2}), READERS),
    Right("delete workspace", "DELETE", _W, OWNERS, frozenset({1, 2}), READERS),
    Right("pin workspace", "POST", f"{_W}/pin", EVERYBODY, READERS, READERS),
    Right("view members", "GET", "/api/v1/roles/workspace/{workspace}", EVERYBODY, ALL_ROLES),
    Right("view project", "GET", _P, EVERYBODY, READERS, READERS),
    Right("create project", "POST", f"{_W}/projects", EVERYBODY, frozenset({1, 2, 5, 7, 8}), READERS, _RENAMED),
    Right("edit project", "PATCH", _P, OWNERS, frozenset({1, 2, 5, 7, 8}), READERS, _RENAMED),
    Right("delete project", "DELETE", _P, OWNERS, frozenset({1, 2, 8}), READERS),
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
    Right("view command", "GET", _N, EVERYBODY, READERS, READERS),
    Right("kill command", "POST", f"{_N}/kill", EVERYBODY, frozenset({1, 2, 5, 8, 9}), READERS),
    Right("view task", "GET", "/api/v1/tasks/{command}", EVERYBODY, READERS, READERS),
    Right("read log", "GET", "/api/v1/tasks/{command}/logs", EVERYBODY, READERS, READERS),
    Right("view template", "GET", _T, EVERYBODY, READERS, READERS),
    Right("edit template", "PATCH", _T, EVERYBODY, EDITORS, READERS, {"a": 1}),
    Right("delete template", "DELETE", _T, EVERYBODY, EDITORS, READERS),
    Right("view model", "GET", _M, EVERYBODY, MODEL_READERS, MODEL_READERS),
    Right("list versions", "GET", f"{_M}/versions", EVERYBODY, MODEL_READERS, MODEL_READERS),
    Right("edit model", "PATCH", _M, EVERYBODY, EDITORS, MODEL_READERS, {"notes": "n"}),
    Right("archive model", "POST", f"{_M}/archive", EVERYBODY, EDITORS, MODEL_READERS),
    Right("create model", "POST", "/api/v1/models", EVERYBODY, EDITORS, READERS, _OF_WORKSPACE),
    Right("delete model", "DELETE", _M, OWNERS, EDITORS, MODEL_READERS),
    Right("list webhooks", "GET", "/api/v1/webhooks", EVERYBODY, ALL_ROLES),
    Right("list webhooks of events", "GET", "/api/v1/resolute/event-webhooks", ADMINS, frozenset({1})),
    Right("view policies", "GET", f"{_C}/workspaces/{{workspace}}/EXPERIMENT", EVERYBODY, READERS, READERS),
    Right("change policies", "DELETE", f"{_C}/workspaces/{{workspace}}/EXPERIMENT", OWNERS, frozenset({1, 2}), READERS),
    Right("change policies of all", "DELETE", f"{_C}/global/EXPERIMENT", ADMINS, frozenset({1})),
    Right("read usage", "GET", _USAGE, EVERYBODY, frozenset({1})),
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
    Right("view master configuration", "GET", "/api/v1/master/config", ADMINS, frozenset({1})),
    Right("read audit log", "GET", "/api/v1/resolute/audit", ADMINS, frozenset({1})),
    Right("disable agent", "POST", "/api/v1/agents/{agent}/disable", ADMINS, frozenset({1})),
    Right("list jobs", "GET", "/api/v1/job-queues-v2", EVERYBODY, ALL_ROLES),
    Right("list own tokens", "GET", "/api/v1/tokens", EVERYBODY, frozenset({1, 10})),
    Right("preview search", "POST", "/api/v1/preview-hp-search", EVERYBODY, EDITORS),
    # The last: whoever makes a workspace is given a role in it.
    Right("create workspace", "POST", "/api/v1/workspaces", EVERYBODY, frozenset({1, 3, 8}), body=_RENAMED),
)
