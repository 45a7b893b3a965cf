"""Users, groups, roles, logins, access tokens."""

from __future__ import annotations

from typing import Final

from tests.scenarios.bindings.call import Call

_U: Final = {"userId": "{user_id}"}
_SETTING: Final = {"key": "theme", "storagePath": "ui", "value": "dark"}
_VIEWER: Final = {"role": {"roleId": 4}}

CALLS: Final = (
    Call("post_Login", {"body": {"username": "{user}", "password": "Passw0rd!", "isHashed": False}}),
    Call("get_CurrentUser"),
    Call("get_GetMe"),
    Call("post_PostUser", {"body": {"user": {"username": "{nonce}", "active": True, "admin": False}}}),
    Call("get_GetUser", _U),
    Call("get_GetUserByUsername", {"username": "{user}"}),
    Call("get_GetUsers"),
    Call("patch_PatchUser", {**_U, "body": {"displayName": "Ada"}}),
    Call("patch_PatchUsers", {"body": {"userIds": ["{new_user_id}"], "activate": False}}),
    Call("post_SetUserPassword", {"userId": "{new_user_id}", "body": "Passw0rd?"}),
    Call(
        "post_PostUserActivity",
        {"body": {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": 1}},
    ),
    Call("post_PostUserSetting", {"body": {"settings": [_SETTING]}}),
    Call("get_GetUserSetting"),
    Call("post_ResetUserSetting"),
    Call("post_PostAccessToken", {"body": {"userId": "{new_user_id}", "lifespan": "24h"}}),
    Call("get_GetAccessTokens"),
    Call(
        "patch_PatchAccessToken", {"tokenId": "{token_id}", "body": {"tokenId": "{token_id}", "description": "known"}}
    ),
    Call("post_CreateGroup", {"body": {"name": "{nonce}", "addUsers": ["{user_id}"]}}),
    Call("get_GetGroup", {"groupId": "{group_id}"}),
    Call("post_GetGroups", {"body": {"limit": 10}}),
    Call(
        "put_UpdateGroup",
        {"groupId": "{renamed_group_id}", "body": {"groupId": "{renamed_group_id}", "name": "{nonce}"}},
    ),
    Call("delete_DeleteGroup", {"groupId": "{new_group_id}"}),
    Call(
        "patch_AssignMultipleGroups",
        {"body": {"userIds": ["{user_id}"], "addGroups": ["{new_group_id}"], "removeGroups": []}},
    ),
    Call("get_GetPermissionsSummary"),
    Call("post_GetRolesByID", {"body": {"roleIds": [4]}}),
    Call("post_ListRoles", {"body": {"limit": 10}}),
    Call("post_SearchRolesAssignableToScope", {"body": {"limit": 10, "workspaceId": "{workspace_id}"}}),
    Call("get_GetRolesAssignedToUser", {"userId": "{role_user_id}"}),
    Call("get_GetRolesAssignedToGroup", {"groupId": "{group_id}"}),
    Call("get_GetGroupsAndUsersAssignedToWorkspace", {"workspaceId": "{workspace_id}"}),
    Call(
        "post_AssignRoles",
        {
            "body": {
                "userRoleAssignments": [{"userId": "{new_user_id}", "roleAssignment": _VIEWER}],
                "groupRoleAssignments": [],
            }
        },
    ),
    Call(
        "post_RemoveAssignments",
        {
            "body": {
                "userRoleAssignments": [{"userId": "{role_user_id}", "roleAssignment": _VIEWER}],
                "groupRoleAssignments": [],
            }
        },
    ),
    Call("post_Logout"),
)
