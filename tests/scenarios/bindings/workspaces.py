"""Workspaces, projects, policies, bindings to namespaces and pools, webhooks."""

from __future__ import annotations

from typing import Final

from tests.scenarios.bindings.call import Call

_W: Final = {"id": "{workspace_id}"}
_P: Final = {"id": "{project_id}"}
_POOL: Final = {"resourcePoolName": "others"}
_POLICY: Final = {"workloadType": "EXPERIMENT"}
_POLICIES: Final = {"configPolicies": "invariant_config: {{description: fixed}}\n"}
_LIMITS: Final = {"configPolicies": "constraints: {{resources: {{max_slots: 2}}}}\n"}
_TEAM: Final = {"here": {"namespace": "team"}}

CALLS: Final = (
    Call("post_PostWorkspace", {"body": {"name": "{nonce}"}}),
    Call("get_GetWorkspace", _W),
    Call("get_GetWorkspaces"),
    Call("get_GetWorkspaceProjects", _W),
    Call("patch_PatchWorkspace", {"id": "{new_workspace_id}", "body": {"name": "{nonce}"}}),
    Call("post_ArchiveWorkspace", {"id": "{new_workspace_id}"}),
    Call("post_UnarchiveWorkspace", {"id": "{archived_workspace_id}"}),
    Call("post_PinWorkspace", {"id": "{new_workspace_id}"}),
    Call("post_UnpinWorkspace", _W),
    Call("delete_DeleteWorkspace", {"id": "{new_workspace_id}"}),
    Call("get_ListWorkspaceNamespaceBindings", _W),
    Call(
        "post_SetWorkspaceNamespaceBindings",
        {"workspaceId": "{new_workspace_id}", "body": {"workspaceId": 1, "clusterNamespaceMeta": _TEAM}},
    ),
    Call("delete_DeleteWorkspaceNamespaceBindings", {"workspaceId": "{bound_workspace_id}", "clusterNames": ["here"]}),
    Call("get_GetWorkspacesWithDefaultNamespaceBindings"),
    Call("post_BulkAutoCreateWorkspaceNamespaceBindings", {"body": {"workspaceIds": ["{new_workspace_id}"]}}),
    Call("get_GetKubernetesResourceQuotas", _W),
    Call(
        "post_SetResourceQuotas",
        {"id": "{own_workspace_id}", "body": {"id": 1, "clusterQuotaPairs": {"here": 4}}},
    ),
    Call("get_GetKubernetesResourceManagers"),
    Call("get_ListRPsBoundToWorkspace", {"workspaceId": "{workspace_id}"}),
    Call("get_ListWorkspacesBoundToRP", _POOL),
    Call("post_BindRPToWorkspace", {**_POOL, "body": {"resourcePoolName": "", "workspaceIds": ["{new_workspace_id}"]}}),
    Call(
        "put_OverwriteRPWorkspaceBindings",
        {**_POOL, "body": {"resourcePoolName": "", "workspaceIds": ["{new_workspace_id}"]}},
    ),
    Call(
        "delete_UnbindRPFromWorkspace",
        {**_POOL, "body": {"resourcePoolName": "", "workspaceIds": ["{pool_workspace_id}"]}},
    ),
    Call("post_PostProject", {"workspaceId": "{workspace_id}", "body": {"name": "{nonce}", "workspaceId": 1}}),
    Call("get_GetProject", _P),
    Call("get_GetProjectByKey", {"key": "{project_key}"}),
    Call("get_GetProjectColumns", _P),
    Call("get_GetProjectNumericMetricsRange", {"id": 1}),
    Call("get_GetProjectsByUserActivity"),
    Call("patch_PatchProject", {"id": "{new_project_id}", "body": {"name": "{nonce}"}}),
    Call("post_AddProjectNote", {"projectId": "{project_id}", "body": {"name": "todo", "contents": "listen"}}),
    Call("put_PutProjectNotes", {"projectId": "{project_id}", "body": {"notes": [], "projectId": 1}}),
    Call("post_ArchiveProject", {"id": "{new_project_id}"}),
    Call("post_UnarchiveProject", {"id": "{archived_project_id}"}),
    Call(
        "post_MoveProject",
        {
            "projectId": "{new_project_id}",
            "body": {"projectId": 1, "destinationWorkspaceId": "{new_workspace_id}"},
        },
    ),
    Call("delete_DeleteProject", {"id": "{new_project_id}"}),
    Call("get_GetGlobalConfigPolicies", _POLICY),
    Call("put_PutGlobalConfigPolicies", {"workloadType": "NTSC", "body": {"workloadType": "NTSC", **_LIMITS}}),
    Call("delete_DeleteGlobalConfigPolicies", {"workloadType": "NTSC"}),
    Call("get_GetWorkspaceConfigPolicies", {**_POLICY, "workspaceId": "{policy_workspace_id}"}),
    Call(
        "put_PutWorkspaceConfigPolicies",
        {
            **_POLICY,
            "workspaceId": "{new_workspace_id}",
            "body": {"workspaceId": 1, "workloadType": "EXPERIMENT", **_POLICIES},
        },
    ),
    Call("delete_DeleteWorkspaceConfigPolicies", {**_POLICY, "workspaceId": "{policy_workspace_id}"}),
    Call(
        "post_PostWebhook",
        {
            "body": {
                "name": "{nonce}",
                "url": "https://example.org/hook",
                "webhookType": "WEBHOOK_TYPE_DEFAULT",
                "triggers": [
                    {
                        "triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE",
                        "condition": {"state": "COMPLETED"},
                    }
                ],
                "mode": "WEBHOOK_MODE_WORKSPACE",
            }
        },
    ),
    Call("get_GetWebhooks"),
    Call("patch_PatchWebhook", {"id": "{webhook_id}", "body": {"url": "https://example.org/other"}}),
    Call(
        "post_TestWebhook",
        {"id": "{webhook_id}"},
        refused="did not take the test",
        because="there is nobody at this address",
    ),
    Call("delete_DeleteWebhook", {"id": "{new_webhook_id}"}),
    Call(
        "post_PostWebhookEventData",
        {
            "body": {
                "experimentId": "{running_experiment}",
                "trialId": "{running_trial}",
                "data": {"title": "t", "description": "d", "level": "LOG_LEVEL_INFO"},
            }
        },
    ),
)
