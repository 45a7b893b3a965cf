"""REST shapes of users (docs/reference/platform.md 3)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination, Timestamp, WireEnum
from services.api.wire.ordering import OrderBy


class AgentUserGroup(Message):
    agent_uid: int | UnsetType = UNSET
    agent_gid: int | UnsetType = UNSET
    agent_user: str | UnsetType = UNSET
    agent_group: str | UnsetType = UNSET


class User(Message):
    id: int = 0
    username: str = ""
    admin: bool = False
    active: bool = False
    agent_user_group: AgentUserGroup | None = None
    display_name: str = ""
    modified_at: Timestamp | None = None
    remote: bool = False
    last_auth_at: Timestamp | None = None


class UserResponse(Message):
    user: User | None = None


class NewUser(Message):
    username: str = ""
    admin: bool = False
    active: bool = False
    agent_user_group: AgentUserGroup | UnsetType = UNSET
    display_name: str = ""
    remote: bool = False


class PostUserRequest(Message):
    user: NewUser = field(default_factory=NewUser)
    password: str = ""
    is_hashed: bool = False


class PatchUser(Message):
    username: str | UnsetType = UNSET
    password: str | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    agent_user_group: AgentUserGroup | UnsetType = UNSET
    is_hashed: bool = False
    remote: bool | UnsetType = UNSET


class PatchUsersRequest(Message):
    user_ids: list[int] = []
    activate: bool = False


class UserActionResult(Message):
    error: str = ""
    id: int = 0


class PatchUsersResponse(Message):
    results: list[UserActionResult] = []


class SortUsers(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    DISPLAY_NAME = "SORT_BY_DISPLAY_NAME", 1
    USER_NAME = "SORT_BY_USER_NAME", 2
    ADMIN = "SORT_BY_ADMIN", 3
    ACTIVE = "SORT_BY_ACTIVE", 4
    MODIFIED_TIME = "SORT_BY_MODIFIED_TIME", 5
    NAME = "SORT_BY_NAME", 6
    LAST_AUTH_TIME = "SORT_BY_LAST_AUTH_TIME", 7
    REMOTE = "SORT_BY_REMOTE", 8


class GetUsersQuery(Message):
    sort_by: SortUsers = SortUsers.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    name: str = ""
    active: bool | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    role_id_assigned_directly_to_user: list[int] = []


class GetUsersResponse(Message):
    users: list[User] = []
    pagination: Pagination = field(default_factory=Pagination)


class UserSetting(Message):
    key: str = ""
    storage_path: str = ""
    value: str = ""


class UserSettings(Message):
    settings: list[UserSetting] = []
