"""``det workspace | project | config-policies | resource-pool bindings``."""

from __future__ import annotations

from typing import Final

from tests.scenarios.leaves.leaf import Leaf

LEAVES: Final = (
    Leaf("workspace archive", "{new_workspace}"),
    Leaf("workspace bindings delete", "{bound_workspace}"),
    Leaf("workspace bindings list", "{workspace}", says="here"),
    Leaf("workspace bindings set", "{new_workspace} --namespace team", says="team"),
    Leaf("workspace create", "{nonce}", formats="json"),
    Leaf("workspace delete", "{new_workspace} --yes"),
    Leaf("workspace describe", "{workspace}", formats="json", says="workspace-"),
    Leaf("workspace edit", "{new_workspace} --name {nonce}", formats="json"),
    Leaf("workspace list", formats="json", says="Uncategorized"),
    Leaf("workspace list-members", "{workspace}", formats="json yaml csv"),
    Leaf("workspace list-pools", "{workspace}", says="gpus"),
    Leaf("workspace list-projects", "{workspace}", formats="json", unknown="No workspace found"),
    Leaf("workspace resource-quota set", "{own_workspace} 4"),
    Leaf("workspace unarchive", "{archived_workspace}"),
    Leaf("project archive", "{workspace} {new_project}"),
    Leaf("project create", "{workspace} {nonce}", formats="json"),
    Leaf("project delete", "{workspace} {new_project} --yes"),
    Leaf("project describe", "{workspace} {project}", formats="json"),
    Leaf("project edit", "{workspace} {new_project} --new_name {nonce}", formats="json"),
    Leaf("project list", "{workspace}", formats="json", unknown="No workspace found"),
    Leaf("project list-experiments", "{workspace} {project}", formats="json"),
    Leaf("project unarchive", "{workspace} {archived_project}"),
    Leaf("config-policies delete", "experiment --workspace-name {policy_workspace}"),
    Leaf("config-policies describe", "experiment --workspace-name {policy_workspace}", formats="json yaml"),
    Leaf("config-policies set", "experiment {policy_file} --workspace-name {workspace}"),
    Leaf("resource-pool bindings add", "others {new_workspace}"),
    Leaf("resource-pool bindings list-workspaces", "others"),
    Leaf("resource-pool bindings remove", "others {pool_workspace}"),
    Leaf("resource-pool bindings replace", "others {new_pool_workspace}"),
)
