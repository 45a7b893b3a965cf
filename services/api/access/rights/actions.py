"""What users do, and what each of it needs: one row per action, one column per type of authorization. Data.

``rights.py`` evaluates it, and nothing else does. Source: docs/reference/platform.md 6; ``Better`` there is what is
built here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from services.api.access.rights.permissions import Permission


class Basic(Enum):
    """Who may, under basic authorization."""

    ANYBODY = auto()
    SELF = auto()
    ADMIN = auto()
    OWNER = auto()
    """Whoever owns the object, and administrators. A webhook and policies are owned with their workspace."""
    OWNER_OR_PARENT = auto()
    """Also whoever owns what the object is in: the workspace of a project, the model of a version."""


class Scope(Enum):
    """Where a role has to be given for its permissions to count."""

    WORKSPACE = auto()
    """In the workspace of the object, or for the whole cluster."""
    CLUSTER = auto()
    ANYWHERE = auto()


@dataclass(frozen=True, slots=True)
class Rule:
    """One row.

    basic    who may under basic authorization
    needs    permissions that are all needed under RBAC; none: everybody may
    view     what is needed to know of the object at all; without it the object is not there (404)
    refusal  text of the 403 under basic authorization
    """

    basic: Basic
    needs: tuple[Permission, ...] = ()
    scope: Scope = Scope.WORKSPACE
    view: Permission | None = None
    refusal: str = "user does not have permission"


class Action(Enum):
    ADMINISTRATE_USERS = auto()
    CREATE_USERS = auto()
    ACTIVATE_USERS = auto()
    SET_PRIVILEGES = auto()
    SET_OTHERS_PASSWORD = auto()
    EDIT_USER = auto()
    """Password and display name."""
    RENAME_USER = auto()
    VIEW_GROUPS = auto()
    EDIT_GROUPS = auto()
    VIEW_ROLES = auto()
    ASSIGN_ROLES = auto()

    VIEW_WORKSPACE = auto()
    CREATE_WORKSPACE = auto()
    EDIT_WORKSPACE = auto()
    ARCHIVE_WORKSPACE = auto()
    UNARCHIVE_WORKSPACE = auto()
    DELETE_WORKSPACE = auto()
    SET_WORKSPACE_IDENTITY = auto()
    SET_WORKSPACE_STORAGE = auto()
    SET_WORKSPACE_POOLS = auto()
    PIN_WORKSPACE = auto()
    VIEW_UNBOUND_WORKSPACES = auto()
    BIND_NAMESPACES = auto()
    """Tasks reach whatever their namespace holds, so this is not for owners of workspaces."""
    SET_QUOTAS = auto()
    VIEW_QUOTAS = auto()
    VIEW_POOL_BINDINGS = auto()
    BIND_POOLS = auto()

    VIEW_PROJECT = auto()
    CREATE_PROJECT = auto()
    NOTE_IN_PROJECT = auto()
    EDIT_PROJECT = auto()
    DELETE_PROJECT = auto()
    MOVE_PROJECT = auto()

    VIEW_EXPERIMENT = auto()
    VIEW_ARTIFACTS = auto()
    """Configuration, logs, model definition, checkpoints."""
    CREATE_EXPERIMENT = auto()
    FORK_EXPERIMENT = auto()
    CONTROL_EXPERIMENT = auto()
    EDIT_EXPERIMENT = auto()
    DELETE_EXPERIMENT = auto()
    LEAVE_FILES = auto()
    """Deleting an experiment without the files of its checkpoints."""
    DELETE_RUN = auto()
    EDIT_CHECKPOINT = auto()
    DELETE_TENSORBOARD_FILES = auto()
    MOVE_EXPERIMENT = auto()
    PREVIEW_SEARCH = auto()

    VIEW_TASK = auto()
    CREATE_TASK = auto()
    CONTROL_TASK = auto()

    VIEW_MODEL = auto()
    CREATE_MODEL = auto()
    EDIT_MODEL = auto()
    MOVE_MODEL = auto()
    DELETE_MODEL = auto()
    DELETE_OTHERS_MODEL = auto()
    DELETE_MODEL_VERSION = auto()
    DELETE_OTHERS_MODEL_VERSION = auto()

    VIEW_TEMPLATE = auto()
    CREATE_TEMPLATE = auto()
    EDIT_TEMPLATE = auto()
    DELETE_TEMPLATE = auto()

    VIEW_GLOBAL_WEBHOOKS = auto()
    EDIT_GLOBAL_WEBHOOKS = auto()
    VIEW_WEBHOOKS = auto()
    EDIT_WEBHOOKS = auto()
    EDIT_EVENT_WEBHOOKS = auto()
    """Those of public events, which are about everybody's objects."""

    VIEW_WORKSPACE_POLICIES = auto()
    EDIT_WORKSPACE_POLICIES = auto()
    VIEW_GLOBAL_POLICIES = auto()
    EDIT_GLOBAL_POLICIES = auto()

    VIEW_MASTER_CONFIG = auto()
    EDIT_MASTER_CONFIG = auto()
    VIEW_CLUSTER_MESSAGE = auto()
    """Also one that is not shown yet."""
    SET_CLUSTER_MESSAGE = auto()
    CLEAR_CLUSTER_MESSAGE = auto()
    VIEW_MASTER_LOGS = auto()
    VIEW_USAGE = auto()
    ENABLE_AGENTS = auto()
    DISABLE_AGENTS = auto()
    CONTROL_SLOTS = auto()
    VIEW_AGENT_DETAILS = auto()
    CONTROL_QUEUE = auto()
    CONTROL_QUEUE_STRICTLY = auto()
    VIEW_ALL_JOBS = auto()
    SET_LIMITS = auto()
    SET_SHARES = auto()
    READ_AUDIT_LOG = auto()
    CLEAN_UP_LOGS = auto()

    CREATE_TOKEN = auto()
    CREATE_OTHERS_TOKEN = auto()
    VIEW_TOKENS = auto()
    VIEW_OTHERS_TOKENS = auto()
    EDIT_TOKEN = auto()
    EDIT_OTHERS_TOKEN = auto()
    MANAGE_OAUTH = auto()


_ANYBODY, _ADMIN, _OWNER = Basic.ANYBODY, Basic.ADMIN, Basic.OWNER
_C, _ANYWHERE = Scope.CLUSTER, Scope.ANYWHERE
_OF_EXPERIMENT: Final = Permission.VIEW_EXPERIMENT_METADATA
_MODELS_OF_OTHERS: Final = "non-admin users may not delete other users' models"


def _only_owners(what: str, *needs: Permission) -> Rule:
    """Of experiments."""
    return Rule(_OWNER, needs, view=_OF_EXPERIMENT, refusal=f"only its owner or an administrator can {what}")


def _own_workspace(what: str, *needs: Permission) -> Rule:
    refusal = f"only admins may {what} other user's workspaces"
    return Rule(_OWNER, needs, view=Permission.VIEW_WORKSPACE, refusal=refusal)


def _own_project(*needs: Permission) -> Rule:
    refusal = "non admin users need to own the project or workspace to change it"
    return Rule(Basic.OWNER_OR_PARENT, needs, view=Permission.VIEW_PROJECT, refusal=refusal)


def _only_admins(what: str, *needs: Permission) -> Rule:
    return Rule(_ADMIN, needs, _C, refusal=f"only admin privileged users can {what}")


MATRIX: Final[Mapping[Action, Rule]] = {
    Action.ADMINISTRATE_USERS: _only_admins("modify other users", Permission.ADMINISTRATE_USER),
    Action.CREATE_USERS: _only_admins("create other users", Permission.ADMINISTRATE_USER),
    Action.ACTIVATE_USERS: _only_admins("activate and deactivate users", Permission.ADMINISTRATE_USER),
    Action.SET_PRIVILEGES: _only_admins("modify privileges and identities of users", Permission.ADMINISTRATE_USER),
    Action.SET_OTHERS_PASSWORD: _only_admins("change passwords of other users", Permission.ADMINISTRATE_USER),
    Action.EDIT_USER: Rule(
        Basic.SELF, (Permission.ADMINISTRATE_USER,), _C, refusal="only admin privileged users can do this"
    ),
    Action.RENAME_USER: Rule(
        Basic.SELF, (Permission.ADMINISTRATE_USER,), _C, refusal="only admin privileged users can do this"
    ),
    Action.VIEW_GROUPS: Rule(_ANYBODY, (Permission.ASSIGN_ROLES,), _ANYWHERE),
    Action.EDIT_GROUPS: Rule(_ADMIN, (Permission.UPDATE_GROUP,), _C),
    Action.VIEW_ROLES: Rule(_ANYBODY, (Permission.ASSIGN_ROLES,), _ANYWHERE),
    Action.ASSIGN_ROLES: Rule(_ADMIN, (Permission.ASSIGN_ROLES,)),
    Action.VIEW_WORKSPACE: Rule(_ANYBODY, (Permission.VIEW_WORKSPACE,), view=Permission.VIEW_WORKSPACE),
    Action.CREATE_WORKSPACE: Rule(_ANYBODY, (Permission.CREATE_WORKSPACE,), _C),
    Action.EDIT_WORKSPACE: _own_workspace("change", Permission.UPDATE_WORKSPACE),
    Action.ARCHIVE_WORKSPACE: _own_workspace("archive", Permission.UPDATE_WORKSPACE),
    Action.UNARCHIVE_WORKSPACE: _own_workspace("unarchive", Permission.UPDATE_WORKSPACE),
    Action.DELETE_WORKSPACE: _own_workspace("delete", Permission.DELETE_WORKSPACE),
    Action.SET_WORKSPACE_IDENTITY: Rule(
        _ADMIN,
        (Permission.SET_WORKSPACE_AGENT_USER_GROUP,),
        view=Permission.VIEW_WORKSPACE,
        refusal="only admin privileged users can set the agent user group of a workspace",
    ),
    Action.SET_WORKSPACE_STORAGE: _own_workspace("change", Permission.SET_WORKSPACE_CHECKPOINT_STORAGE_CONFIG),
    Action.SET_WORKSPACE_POOLS: Rule(
        _ANYBODY, (Permission.SET_WORKSPACE_DEFAULT_RESOURCE_POOL,), view=Permission.VIEW_WORKSPACE
    ),
    Action.PIN_WORKSPACE: Rule(_ANYBODY, (Permission.VIEW_WORKSPACE,), view=Permission.VIEW_WORKSPACE),
    Action.VIEW_UNBOUND_WORKSPACES: Rule(_ANYBODY, (Permission.SET_WORKSPACE_NAMESPACE_BINDINGS,), _C),
    Action.BIND_NAMESPACES: _only_admins("bind workspaces to namespaces", Permission.SET_WORKSPACE_NAMESPACE_BINDINGS),
    Action.SET_QUOTAS: _only_admins("set the resource quota of a workspace", Permission.SET_RESOURCE_QUOTAS),
    Action.VIEW_QUOTAS: Rule(_ANYBODY, (Permission.VIEW_RESOURCE_QUOTAS,), view=Permission.VIEW_WORKSPACE),
    Action.VIEW_POOL_BINDINGS: Rule(_ANYBODY, (Permission.MODIFY_RP_WORKSPACE_BINDINGS,), _C),
    Action.BIND_POOLS: _only_admins("bind resource pools to workspaces", Permission.MODIFY_RP_WORKSPACE_BINDINGS),
    Action.VIEW_PROJECT: Rule(_ANYBODY, (Permission.VIEW_PROJECT,), view=Permission.VIEW_PROJECT),
    Action.CREATE_PROJECT: Rule(_ANYBODY, (Permission.CREATE_PROJECT,), view=Permission.VIEW_WORKSPACE),
    Action.NOTE_IN_PROJECT: Rule(_ANYBODY, (Permission.UPDATE_PROJECT,), view=Permission.VIEW_PROJECT),
    Action.EDIT_PROJECT: _own_project(Permission.UPDATE_PROJECT),
    Action.DELETE_PROJECT: _own_project(Permission.DELETE_PROJECT),
    Action.MOVE_PROJECT: Rule(
        _OWNER,
        (Permission.DELETE_PROJECT,),
        view=Permission.VIEW_PROJECT,
        refusal="non admin users need to own the project to move it",
    ),
    Action.VIEW_EXPERIMENT: Rule(_ANYBODY, (_OF_EXPERIMENT,), view=_OF_EXPERIMENT),
    Action.VIEW_ARTIFACTS: Rule(_ANYBODY, (Permission.VIEW_EXPERIMENT_ARTIFACTS,), view=_OF_EXPERIMENT),
    Action.CREATE_EXPERIMENT: Rule(_ANYBODY, (Permission.CREATE_EXPERIMENT,), view=Permission.VIEW_PROJECT),
    Action.FORK_EXPERIMENT: Rule(_ANYBODY, (_OF_EXPERIMENT, Permission.VIEW_EXPERIMENT_ARTIFACTS), view=_OF_EXPERIMENT),
    Action.CONTROL_EXPERIMENT: Rule(_ANYBODY, (Permission.UPDATE_EXPERIMENT,), view=_OF_EXPERIMENT),
    Action.EDIT_EXPERIMENT: Rule(_ANYBODY, (Permission.UPDATE_EXPERIMENT_METADATA,), view=_OF_EXPERIMENT),
    Action.DELETE_EXPERIMENT: _only_owners("delete an experiment", Permission.DELETE_EXPERIMENT),
    Action.DELETE_RUN: _only_owners("delete a run", Permission.DELETE_EXPERIMENT),
    Action.EDIT_CHECKPOINT: Rule(_ANYBODY, (Permission.UPDATE_EXPERIMENT,), view=_OF_EXPERIMENT),
    Action.DELETE_TENSORBOARD_FILES: _only_owners(
        "delete TensorBoard files of an experiment", Permission.UPDATE_EXPERIMENT
    ),
    Action.MOVE_EXPERIMENT: _only_owners("move an experiment", Permission.DELETE_EXPERIMENT),
    Action.PREVIEW_SEARCH: Rule(_ANYBODY, (Permission.CREATE_EXPERIMENT,), _ANYWHERE),
    Action.VIEW_TASK: Rule(_ANYBODY, (Permission.VIEW_NSC,), view=Permission.VIEW_NSC),
    Action.CREATE_TASK: Rule(_ANYBODY, (Permission.CREATE_NSC,), view=Permission.VIEW_WORKSPACE),
    Action.CONTROL_TASK: Rule(_ANYBODY, (Permission.UPDATE_NSC,), view=Permission.VIEW_NSC),
    Action.VIEW_MODEL: Rule(_ANYBODY, (Permission.VIEW_MODEL_REGISTRY,), view=Permission.VIEW_MODEL_REGISTRY),
    Action.CREATE_MODEL: Rule(_ANYBODY, (Permission.CREATE_MODEL_REGISTRY,), view=Permission.VIEW_WORKSPACE),
    Action.EDIT_MODEL: Rule(_ANYBODY, (Permission.EDIT_MODEL_REGISTRY,), view=Permission.VIEW_MODEL_REGISTRY),
    Action.MOVE_MODEL: Rule(_ANYBODY, (Permission.EDIT_MODEL_REGISTRY,), view=Permission.VIEW_MODEL_REGISTRY),
    Action.DELETE_MODEL: Rule(
        _OWNER, (Permission.DELETE_MODEL_REGISTRY,), view=Permission.VIEW_MODEL_REGISTRY, refusal=_MODELS_OF_OTHERS
    ),
    Action.DELETE_OTHERS_MODEL: Rule(
        _OWNER,
        (Permission.DELETE_MODEL_REGISTRY, Permission.DELETE_OTHER_USER_MODEL_REGISTRY),
        view=Permission.VIEW_MODEL_REGISTRY,
        refusal=_MODELS_OF_OTHERS,
    ),
    Action.DELETE_MODEL_VERSION: Rule(
        Basic.OWNER_OR_PARENT,
        (Permission.DELETE_MODEL_VERSION,),
        view=Permission.VIEW_MODEL_REGISTRY,
        refusal=_MODELS_OF_OTHERS,
    ),
    Action.DELETE_OTHERS_MODEL_VERSION: Rule(
        Basic.OWNER_OR_PARENT,
        (Permission.DELETE_MODEL_VERSION, Permission.DELETE_OTHER_USER_MODEL_VERSION),
        view=Permission.VIEW_MODEL_REGISTRY,
        refusal=_MODELS_OF_OTHERS,
    ),
    Action.VIEW_TEMPLATE: Rule(_ANYBODY, (Permission.VIEW_TEMPLATES,), view=Permission.VIEW_TEMPLATES),
    Action.CREATE_TEMPLATE: Rule(_ANYBODY, (Permission.CREATE_TEMPLATES,), view=Permission.VIEW_WORKSPACE),
    Action.EDIT_TEMPLATE: Rule(_ANYBODY, (Permission.UPDATE_TEMPLATES,), view=Permission.VIEW_TEMPLATES),
    Action.DELETE_TEMPLATE: Rule(_ANYBODY, (Permission.DELETE_TEMPLATES,), view=Permission.VIEW_TEMPLATES),
    Action.VIEW_GLOBAL_WEBHOOKS: Rule(_ANYBODY, (Permission.VIEW_WEBHOOKS,), _C),
    Action.EDIT_GLOBAL_WEBHOOKS: _only_admins("edit webhooks of all workspaces", Permission.EDIT_WEBHOOKS),
    Action.VIEW_WEBHOOKS: Rule(_OWNER, (Permission.VIEW_WEBHOOKS,), view=Permission.VIEW_WEBHOOKS),
    Action.EDIT_WEBHOOKS: Rule(
        _OWNER,
        (Permission.EDIT_WEBHOOKS,),
        view=Permission.VIEW_WORKSPACE,
        refusal="only its owner or an administrator can edit webhooks of a workspace",
    ),
    Action.VIEW_WORKSPACE_POLICIES: Rule(
        _ANYBODY, (Permission.VIEW_WORKSPACE_CONFIG_POLICIES,), view=Permission.VIEW_WORKSPACE
    ),
    Action.EDIT_WORKSPACE_POLICIES: Rule(
        _OWNER,
        (Permission.MODIFY_WORKSPACE_CONFIG_POLICIES,),
        view=Permission.VIEW_WORKSPACE,
        refusal="only admins may modify config policies of other user's workspaces",
    ),
    Action.VIEW_GLOBAL_POLICIES: Rule(_ANYBODY, (Permission.VIEW_GLOBAL_CONFIG_POLICIES,), _ANYWHERE),
    Action.EDIT_GLOBAL_POLICIES: _only_admins(
        "modify global config policies", Permission.MODIFY_GLOBAL_CONFIG_POLICIES
    ),
    Action.VIEW_MASTER_CONFIG: _only_admins("view the master configuration", Permission.VIEW_MASTER_CONFIG),
    Action.EDIT_MASTER_CONFIG: _only_admins("change the master configuration", Permission.UPDATE_MASTER_CONFIG),
    Action.VIEW_CLUSTER_MESSAGE: _only_admins(
        "view the cluster message before it is shown", Permission.VIEW_MASTER_CONFIG
    ),
    Action.SET_CLUSTER_MESSAGE: _only_admins("set the cluster message", Permission.UPDATE_MASTER_CONFIG),
    Action.CLEAR_CLUSTER_MESSAGE: _only_admins("clear the cluster message", Permission.UPDATE_MASTER_CONFIG),
    Action.VIEW_MASTER_LOGS: Rule(_ANYBODY, (Permission.VIEW_MASTER_LOGS,), _C),
    Action.VIEW_USAGE: Rule(_ANYBODY, (Permission.VIEW_CLUSTER_USAGE,), _C),
    Action.ENABLE_AGENTS: _only_admins("enable agents", Permission.UPDATE_AGENTS),
    Action.DISABLE_AGENTS: _only_admins("disable agents", Permission.UPDATE_AGENTS),
    Action.CONTROL_SLOTS: _only_admins("enable and disable slots", Permission.UPDATE_AGENTS),
    Action.VIEW_AGENT_DETAILS: Rule(_ANYBODY, (Permission.VIEW_SENSITIVE_AGENT_INFO,), _C),
    Action.CONTROL_QUEUE: Rule(_ANYBODY),
    Action.CONTROL_QUEUE_STRICTLY: Rule(_ANYBODY, (Permission.CONTROL_STRICT_JOB_QUEUE,), _C),
    Action.VIEW_ALL_JOBS: Rule(_ANYBODY, (Permission.VIEW_EXTERNAL_JOBS,), _C),
    # Of this system alone, so no row of the reference says anything about them.
    Action.EDIT_EVENT_WEBHOOKS: _only_admins("use webhooks of public events", Permission.EDIT_WEBHOOKS),
    Action.SET_LIMITS: _only_admins("set limits", Permission.UPDATE_MASTER_CONFIG),
    Action.SET_SHARES: _only_admins("set weights of shares", Permission.UPDATE_MASTER_CONFIG),
    Action.READ_AUDIT_LOG: _only_admins("read the audit log", Permission.VIEW_MASTER_LOGS),
    Action.LEAVE_FILES: _only_admins("delete an experiment without its files", Permission.UPDATE_MASTER_CONFIG),
    Action.CLEAN_UP_LOGS: _only_admins("clean up logs", Permission.UPDATE_MASTER_CONFIG),
    Action.CREATE_TOKEN: _only_admins("create token for own/other users", Permission.CREATE_TOKEN),
    Action.CREATE_OTHERS_TOKEN: _only_admins("create token for own/other users", Permission.CREATE_OTHER_TOKEN),
    Action.VIEW_TOKENS: Rule(_ANYBODY, (Permission.VIEW_TOKEN,), _C),
    Action.VIEW_OTHERS_TOKENS: _only_admins("list tokens of other users", Permission.VIEW_OTHER_TOKEN),
    Action.EDIT_TOKEN: _only_admins("update token for own/other users", Permission.UPDATE_TOKEN),
    Action.EDIT_OTHERS_TOKEN: _only_admins("update token for own/other users", Permission.ADMINISTRATE_TOKEN),
    Action.MANAGE_OAUTH: _only_admins("manage OAuth clients", Permission.ADMINISTRATE_OAUTH),
}
