"""Tags of operations: the noun that each is about, from its path. Data."""

from __future__ import annotations

from typing import Final

TAGS: Final = {
    "agents": "Nodes and their slots.",
    "allocations": "Attempts to run a task, and the reports of their processes.",
    "audit": "Records of who changed what.",
    "checkpoints": "Checkpoints, their files and their metadata.",
    "cluster": "The installation: version, configuration, log and use of slots.",
    "commands": "Commands that run in a container.",
    "configuration policies": "Defaults and limits of configurations.",
    "event webhooks": "Webhooks for events of the installation.",
    "experiments": "Experiments, their searches and their files.",
    "generic tasks": "Tasks with an arbitrary entrypoint.",
    "groups": "Groups of users.",
    "jobs": "The queue.",
    "limits": "Limits of slots of users, groups and workspaces.",
    "login": "Logins and single sign-on.",
    "maintenance": "Announced maintenance windows of pools and nodes.",
    "models": "The registry of models and their versions.",
    "namespaces": "Namespaces of clusters that workspaces are bound to.",
    "notebooks": "Notebooks.",
    "oauth": "Clients of OAuth 2.0 and their tokens.",
    "pages": "Pages for browsers.",
    "projects": "Projects of workspaces.",
    "prometheus": "Metrics for Prometheus.",
    "resource pools": "Pools of nodes.",
    "roles": "Roles and who has them.",
    "runs": "Runs: trials as tables show them.",
    "scim": "Users and groups that an identity provider synchronizes.",
    "shares": "Weights under fair share.",
    "shells": "Shells.",
    "tasks": "Tasks of all types, and their logs.",
    "templates": "Templates of configurations.",
    "tensorboards": "TensorBoards.",
    "tokens": "Access tokens.",
    "trials": "Trials and their metrics.",
    "updates": "A stream of changes.",
    "users": "Users and their settings.",
    "webhooks": "Webhooks for states of experiments and for log lines.",
    "workspaces": "Workspaces.",
}
"""What each is about."""
_OF_SEGMENT: Final = {
    "": "pages",
    "auth": "login",
    "check": "jobs",
    "cleanup_logs": "tasks",
    "config-policies": "configuration policies",
    "det": "pages",
    "event-webhooks": "event webhooks",
    "experiment": "experiments",
    "experiments-search": "experiments",
    "generic-tasks": "generic tasks",
    "info": "cluster",
    "job-queues": "jobs",
    "job-queues-v2": "jobs",
    "k8s-resource-managers": "resource pools",
    "master": "cluster",
    "me": "users",
    "model": "models",
    "namespace-bindings": "namespaces",
    "oauth2": "oauth",
    "oidc": "login",
    "permissions": "roles",
    "preview-hp-search": "experiments",
    "prom": "prometheus",
    "resource-pools": "resource pools",
    "resources": "cluster",
    "stream": "updates",
    "task": "tasks",
    "task-logs": "tasks",
    "template": "templates",
    "trial-source-info": "trials",
    "user": "users",
    "waiting": "jobs",
}
"""The first segment of a path that says it otherwise."""


def tag_of(path: str) -> str:
    """The tag of the operations at a path."""
    below = path.removeprefix("/api/v1").removeprefix("/resolute").strip("/")
    segment = below.partition("/")[0]
    return _OF_SEGMENT.get(segment, segment)
