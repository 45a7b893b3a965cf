"""``det user | user-group | rbac | token | auth | oauth``."""

from __future__ import annotations

from typing import Final

from tests.scenarios.leaves.leaf import UNAUTHENTICATED, Leaf

_NONE: Final = "could not find"
_UNREGISTERED: Final = "SCIM with OAuth is not configured, for which there are clients"
_NO_SUCH: Final = "API not found: oauth2/clients"
_WRONG: Final = "Invalid username/password combination"

LEAVES: Final = (
    Leaf("user activate", "{inactive_user}"),
    Leaf("user change-password", "{new_user}", answers=("Passw0rd?", "Passw0rd?")),
    Leaf("user create", "{nonce} --password Passw0rd!"),
    Leaf("user deactivate", "{new_user}"),
    Leaf("user edit", "{new_user} --display-name Ada"),
    Leaf("user link-with-agent-user", "{new_user} --agent-uid 7 --agent-user ada --agent-gid 7 --agent-group lab"),
    Leaf("user list", "--all", says="determined"),
    Leaf("user login", "{new_user}", answers=("Passw0rd!",), logs_in=True, unknown=_WRONG, anonymous=_WRONG),
    Leaf("user logout", logs_in=True, anonymous=""),
    Leaf("user rename", "{new_user} {nonce}"),
    Leaf("user whoami", says="admin"),
    Leaf("user-group add-user", "{group} {new_user}", unknown=_NONE),
    Leaf("user-group change-name", "{new_group} {nonce}", unknown=_NONE),
    Leaf("user-group create", "{nonce} --add-user {user}", unknown=_NONE),
    Leaf("user-group delete", "{new_group} --yes", unknown=_NONE),
    Leaf("user-group describe", "{group}", formats="json", says="user-", unknown=_NONE),
    Leaf("user-group list", formats="json"),
    Leaf("user-group remove-user", "{new_group} {user}", unknown=_NONE),
    Leaf("rbac assign-role", "Viewer --username-to-assign {new_user}", unknown=_NONE),
    Leaf("rbac describe-role", "Viewer", formats="json"),
    Leaf("rbac list-groups-roles", "{group}", formats="json", unknown=_NONE),
    Leaf("rbac list-roles", formats="json", says="Viewer"),
    Leaf("rbac list-users-roles", "{role_user}", formats="json", says="Viewer", unknown=_NONE),
    Leaf("rbac my-permissions", formats="json"),
    Leaf("rbac unassign-role", "Viewer --username-to-assign {new_role_user}", unknown=_NONE),
    Leaf("token create", "{new_user} --expiration-days 3", formats="json yaml"),
    Leaf(
        "token describe",
        "{token_id}",
        formats="json yaml",
        unknown="Token Type",
        unknown_code=0,
        because="the client asks for a list, which has none then",
    ),
    Leaf("token edit", "{token_id} --description known", formats="json yaml", chatty=True),
    Leaf("token list", formats="json yaml"),
    Leaf("token login", "{token}", logs_in=True, unknown=UNAUTHENTICATED),
    Leaf("token revoke", "{new_token_id}"),
    Leaf("auth list-providers", anonymous=""),
    Leaf("auth login", says="No SSO providers found", anonymous=""),
    Leaf(
        "oauth client add",
        "{nonce} https://example.org",
        code=1,
        anonymous="",
        says=_NO_SUCH,
        because=_UNREGISTERED,
    ),
    Leaf("oauth client list", code=1, anonymous="", says=_NO_SUCH, because=_UNREGISTERED),
    Leaf("oauth client remove", "{nonce}", code=1, anonymous="", says=_NO_SUCH, because=_UNREGISTERED),
)
