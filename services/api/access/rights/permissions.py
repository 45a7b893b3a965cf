"""Permissions, each with its number, its name for people, and whether it is about the whole cluster only. Data.

Source: docs/reference/platform.md 5.2.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Permission(Enum):
    """A member's name is what clients know it by, after ``PERMISSION_TYPE_``."""

    CREATE_EXPERIMENT = 2001, "create experiment"
    VIEW_EXPERIMENT_ARTIFACTS = 2002, "view experiment artifacts"
    VIEW_EXPERIMENT_METADATA = 2003, "view experiment metadata"
    UPDATE_EXPERIMENT = 2004, "update experiment"
    UPDATE_EXPERIMENT_METADATA = 2005, "update experiment metadata"
    DELETE_EXPERIMENT = 2006, "delete experiment"
    CREATE_NSC = 3001, "create notebooks/shells/commands"
    VIEW_NSC = 3002, "view notebooks/shells/commands"
    UPDATE_NSC = 3003, "update notebooks/shells/commands"
    VIEW_WORKSPACE = 4002, "view workspace"
    UPDATE_WORKSPACE = 4003, "update workspace"
    DELETE_WORKSPACE = 4004, "delete workspace"
    SET_WORKSPACE_AGENT_USER_GROUP = 4005, "set agent user group on workspace"
    SET_WORKSPACE_CHECKPOINT_STORAGE_CONFIG = 4006, "set checkpoint storage config on workspace"
    SET_WORKSPACE_DEFAULT_RESOURCE_POOL = 4007, "set default resource pool on workspace"
    CREATE_PROJECT = 5001, "create project"
    VIEW_PROJECT = 5002, "view project"
    UPDATE_PROJECT = 5003, "update project"
    DELETE_PROJECT = 5004, "delete project"
    ASSIGN_ROLES = 6002, "assign roles"
    VIEW_MODEL_REGISTRY = 7001, "view model registry"
    EDIT_MODEL_REGISTRY = 7002, "edit model registry"
    CREATE_MODEL_REGISTRY = 7003, "create model registry"
    DELETE_MODEL_REGISTRY = 7004, "delete model registry"
    DELETE_MODEL_VERSION = 7005, "delete model version"
    DELETE_OTHER_USER_MODEL_REGISTRY = 7006, "delete other user model registry"
    DELETE_OTHER_USER_MODEL_VERSION = 7007, "delete other user model version"
    VIEW_MASTER_LOGS = 8001, "view master logs", True
    VIEW_CLUSTER_USAGE = 8002, "view detailed cluster usage", True
    UPDATE_AGENTS = 8003, "update agents", True
    VIEW_SENSITIVE_AGENT_INFO = 8004, "view sensitive agent info", True
    VIEW_MASTER_CONFIG = 8005, "view master config", True
    UPDATE_MASTER_CONFIG = 8006, "update master config", True
    VIEW_EXTERNAL_JOBS = 8007, "view external jobs", True
    CONTROL_STRICT_JOB_QUEUE = 8101, "control strict job queue", True
    VIEW_TEMPLATES = 9001, "view templates"
    UPDATE_TEMPLATES = 9002, "update templates"
    CREATE_TEMPLATES = 9003, "create templates"
    DELETE_TEMPLATES = 9004, "delete templates"
    MODIFY_RP_WORKSPACE_BINDINGS = 10001, "modify rp workspace bindings", True
    SET_WORKSPACE_NAMESPACE_BINDINGS = 11001, "set workspace-namespace bindings", True
    SET_RESOURCE_QUOTAS = 11002, "set resource quotas", True
    VIEW_RESOURCE_QUOTAS = 11003, "view resource quotas"
    MODIFY_GLOBAL_CONFIG_POLICIES = 11004, "modify global config policies", True
    MODIFY_WORKSPACE_CONFIG_POLICIES = 11005, "modify workspace config policies"
    VIEW_GLOBAL_CONFIG_POLICIES = 11006, "view global config policies"
    VIEW_WORKSPACE_CONFIG_POLICIES = 11007, "view workspace config policies"
    ADMINISTRATE_TOKEN = 12001, "administrate access token", True
    UPDATE_TOKEN = 12002, "update own access token", True
    CREATE_TOKEN = 12003, "create access token", True
    CREATE_OTHER_TOKEN = 12004, "create other access token", True
    VIEW_OTHER_TOKEN = 12005, "view other access token", True
    VIEW_TOKEN = 12006, "view own access token", True
    ADMINISTRATE_USER = 91001, "administrate user", True
    ADMINISTRATE_OAUTH = 91002, "manage oauth", True
    UPDATE_GROUP = 93001, "update group", True
    CREATE_WORKSPACE = 94001, "create workspace", True
    UPDATE_ROLES = 96001, "update roles", True
    EDIT_WEBHOOKS = 97001, "edit webhooks"
    VIEW_WEBHOOKS = 97002, "view webhooks"

    def __init__(self, number: int, label: str, is_global: bool = False) -> None:
        self.number = number
        self.label = label
        self.is_global = is_global
        """Granted for the whole cluster or not at all."""

    @property
    def wire_name(self) -> str:
        return f"PERMISSION_TYPE_{self.name}"


BY_NUMBER: Final = {permission.number: permission for permission in Permission}
