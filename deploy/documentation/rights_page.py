"""Writes the page that says who may do what, from the table that the api decides by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deploy.documentation.tables import GENERATED, row, table
from services.api.access.rights.actions import MATRIX, Action, Basic, Scope
from services.api.access.rights.roles import ROLES

WHO: Final[Mapping[Basic, str]] = {
    Basic.ANYBODY: "every user",
    Basic.SELF: "the user, administrators",
    Basic.ADMIN: "administrators",
    Basic.OWNER: "its owner, administrators",
    Basic.OWNER_OR_PARENT: "its owner, the owner of what it is in, administrators",
}

SECTIONS: Final[Mapping[str, Mapping[Action, str]]] = {
    "Users, groups and roles": {
        Action.CREATE_USERS: "create users",
        Action.ACTIVATE_USERS: "deactivate and activate users",
        Action.SET_PRIVILEGES: "make users administrators, remote, or linked to a user of the machines",
        Action.ADMINISTRATE_USERS: "other changes of users",
        Action.EDIT_USER: "change a password or a display name of one's own",
        Action.RENAME_USER: "change the name of one's own account",
        Action.SET_OTHERS_PASSWORD: "change passwords of others",
        Action.VIEW_GROUPS: "see groups",
        Action.EDIT_GROUPS: "create, change and delete groups",
        Action.VIEW_ROLES: "see roles and to whom they are given",
        Action.ASSIGN_ROLES: "give and take roles",
    },
    "Workspaces": {
        Action.VIEW_WORKSPACE: "see a workspace",
        Action.CREATE_WORKSPACE: "create a workspace",
        Action.EDIT_WORKSPACE: "change a workspace",
        Action.ARCHIVE_WORKSPACE: "archive a workspace",
        Action.UNARCHIVE_WORKSPACE: "unarchive a workspace",
        Action.DELETE_WORKSPACE: "delete a workspace",
        Action.PIN_WORKSPACE: "pin a workspace",
        Action.SET_WORKSPACE_IDENTITY: "set the user of the machines that its tasks run as",
        Action.SET_WORKSPACE_STORAGE: "set its checkpoint storage",
        Action.SET_WORKSPACE_POOLS: "set its default resource pools",
        Action.VIEW_UNBOUND_WORKSPACES: "see which workspaces are bound to no namespace",
        Action.BIND_NAMESPACES: "bind workspaces to namespaces",
        Action.VIEW_QUOTAS: "see the quota of a workspace",
        Action.SET_QUOTAS: "set the quota of a workspace",
        Action.VIEW_POOL_BINDINGS: "see which workspaces a pool is bound to",
        Action.BIND_POOLS: "bind pools to workspaces",
    },
    "Projects": {
        Action.VIEW_PROJECT: "see a project",
        Action.CREATE_PROJECT: "create a project",
        Action.NOTE_IN_PROJECT: "add and change notes of a project",
        Action.EDIT_PROJECT: "change, archive and unarchive a project",
        Action.MOVE_PROJECT: "move a project",
        Action.DELETE_PROJECT: "delete a project",
    },
    "Experiments, runs and checkpoints": {
        Action.VIEW_EXPERIMENT: "see an experiment, its trials and metrics",
        Action.VIEW_ARTIFACTS: "read its configuration, logs, code and checkpoints",
        Action.CREATE_EXPERIMENT: "create an experiment",
        Action.FORK_EXPERIMENT: "fork an experiment (and create one, see above)",
        Action.CONTROL_EXPERIMENT: "pause, activate, cancel and kill an experiment, change its resources",
        Action.EDIT_EXPERIMENT: "archive and unarchive it, change name, description, labels and notes",
        Action.MOVE_EXPERIMENT: "move an experiment",
        Action.DELETE_EXPERIMENT: "delete an experiment",
        Action.LEAVE_FILES: "delete an experiment and leave the files of its checkpoints",
        Action.DELETE_RUN: "delete a run",
        Action.EDIT_CHECKPOINT: "change and delete checkpoints",
        Action.DELETE_TENSORBOARD_FILES: "delete TensorBoard files of an experiment",
        Action.PREVIEW_SEARCH: "preview a search",
    },
    "Commands, notebooks, shells, TensorBoards and generic tasks": {
        Action.VIEW_TASK: "see a task, read its logs, open what it serves, apart from notebooks",
        Action.CREATE_TASK: "start a task",
        Action.CONTROL_TASK: "kill a task, change its priority, open a notebook",
    },
    "Models": {
        Action.VIEW_MODEL: "see models and their versions",
        Action.CREATE_MODEL: "create a model",
        Action.EDIT_MODEL: "change and archive a model, register and change versions",
        Action.MOVE_MODEL: "move a model",
        Action.DELETE_MODEL: "delete a model of one's own",
        Action.DELETE_OTHERS_MODEL: "delete a model of somebody else",
        Action.DELETE_MODEL_VERSION: "delete a version of one's own",
        Action.DELETE_OTHERS_MODEL_VERSION: "delete a version of somebody else",
    },
    "Templates, webhooks and config policies": {
        Action.VIEW_TEMPLATE: "see templates",
        Action.CREATE_TEMPLATE: "create a template",
        Action.EDIT_TEMPLATE: "change a template",
        Action.DELETE_TEMPLATE: "delete a template",
        Action.VIEW_GLOBAL_WEBHOOKS: "see webhooks of all workspaces",
        Action.EDIT_GLOBAL_WEBHOOKS: "create, change and delete webhooks of all workspaces",
        Action.VIEW_WEBHOOKS: "see webhooks of a workspace",
        Action.EDIT_WEBHOOKS: "create, change and delete webhooks of a workspace",
        Action.EDIT_EVENT_WEBHOOKS: "use webhooks of public events",
        Action.VIEW_WORKSPACE_POLICIES: "see config policies of a workspace",
        Action.EDIT_WORKSPACE_POLICIES: "set config policies of a workspace",
        Action.VIEW_GLOBAL_POLICIES: "see config policies of all workspaces",
        Action.EDIT_GLOBAL_POLICIES: "set config policies of all workspaces",
    },
    "The cluster and its queue": {
        Action.VIEW_MASTER_CONFIG: "read the cluster configuration",
        Action.EDIT_MASTER_CONFIG: "change the cluster configuration",
        Action.VIEW_CLUSTER_MESSAGE: "read the cluster message before it is shown",
        Action.SET_CLUSTER_MESSAGE: "set the cluster message",
        Action.CLEAR_CLUSTER_MESSAGE: "clear the cluster message",
        Action.VIEW_MASTER_LOGS: "read the logs of the services",
        Action.VIEW_USAGE: "read reports of usage",
        Action.ENABLE_AGENTS: "enable agents",
        Action.DISABLE_AGENTS: "disable agents",
        Action.CONTROL_SLOTS: "enable and disable slots",
        Action.VIEW_AGENT_DETAILS: "see addresses and other details of agents",
        Action.CONTROL_QUEUE: "move jobs in the queue",
        Action.CONTROL_QUEUE_STRICTLY: "move jobs in the queue, with `strict_job_queue_control`",
        Action.VIEW_ALL_JOBS: "see all jobs in the queue, with their names and owners",
        Action.SET_LIMITS: "set limits of users, groups and workspaces",
        Action.SET_SHARES: "set weights of users, groups and workspaces under fair share",
        Action.READ_AUDIT_LOG: "read the audit log",
        Action.CLEAN_UP_LOGS: "clean up logs of tasks",
    },
    "Access tokens and OAuth": {
        Action.CREATE_TOKEN: "create an access token",
        Action.CREATE_OTHERS_TOKEN: "create an access token for somebody else",
        Action.VIEW_TOKENS: "see access tokens of one's own",
        Action.VIEW_OTHERS_TOKENS: "see access tokens of others",
        Action.EDIT_TOKEN: "change and revoke access tokens",
        Action.EDIT_OTHERS_TOKEN: "change and revoke access tokens of others",
        Action.MANAGE_OAUTH: "manage OAuth clients",
    },
}
"""Every action, in words."""


def rights_page() -> str:
    """Every action, who may under basic authorization, and which roles allow it."""
    lines = [
        "# Rights: who may do what",
        "",
        GENERATED,
        "",
        "The table that the api decides by. How to choose between `basic` and `rbac`, and how users, passwords and",
        "roles are made, is in [Users, passwords and rights](users-and-rights.md). Under `basic` most of what people",
        "do every day is for every user: anybody may kill, archive and change the experiment of anybody else, as with",
        "Determined. Under `rbac` a role has to be given in the workspace of the object or for the whole cluster,",
        "where the column does not say otherwise.",
    ]
    for section, actions in SECTIONS.items():
        rows = [row(words, WHO[MATRIX[action].basic], _roles(action)) for action, words in actions.items()]
        lines += ["", f"## {section}", "", *table(("To", "Under `basic`", "Roles that allow it under `rbac`"), rows)]
    return "\n".join([*lines, ""])


def _roles(action: Action) -> str:
    rule = MATRIX[action]
    # What is somebody's own needs no role, apart from a name by which others know them.
    if not rule.needs or (rule.basic is Basic.SELF and action is not Action.RENAME_USER):
        return "everybody may"
    names = ", ".join(role.name for role in ROLES.values() if set(rule.needs) <= role.permissions)
    return f"{names}; {_WHERE[rule.scope]}" if rule.scope in _WHERE else names


_WHERE: Final[Mapping[Scope, str]] = {
    Scope.CLUSTER: "given for the whole cluster",
    Scope.ANYWHERE: "given anywhere",
}
