"""REST shapes of groups of users (docs/reference/platform.md 4)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination
from services.api.wire.users.users import User


class Group(Message):
    group_id: int = 0
    name: str = ""


class GroupDetails(Message):
    group_id: int = 0
    name: str = ""
    users: list[User] = []


class GroupResponse(Message):
    group: GroupDetails | None = None


class CreateGroupRequest(Message):
    name: str = ""
    add_users: list[int] = []


class UpdateGroupRequest(Message):
    group_id: int = 0
    name: str = ""
    add_users: list[int] = []
    remove_users: list[int] = []


class SearchGroupsRequest(Message):
    user_id: int | UnsetType = UNSET
    name: str = ""
    offset: int = 0
    limit: int = 0


class GroupSearchResult(Message):
    group: Group = field(default_factory=Group)
    num_members: int = 0


class SearchGroupsResponse(Message):
    groups: list[GroupSearchResult] = []
    pagination: Pagination = field(default_factory=Pagination)


class AssignGroupsRequest(Message):
    user_ids: list[int] = []
    add_groups: list[int] = []
    remove_groups: list[int] = []
