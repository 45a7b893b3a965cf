"""REST shapes of what users looked at last."""

from __future__ import annotations

from services.api.wire.base import Message, WireEnum
from services.api.wire.workspaces.projects import Project


class ActivityType(WireEnum):
    UNSPECIFIED = "ACTIVITY_TYPE_UNSPECIFIED", 0
    GET = "ACTIVITY_TYPE_GET", 1


class EntityType(WireEnum):
    UNSPECIFIED = "ENTITY_TYPE_UNSPECIFIED", 0
    PROJECT = "ENTITY_TYPE_PROJECT", 1


class PostUserActivityRequest(Message):
    activity_type: ActivityType = ActivityType.UNSPECIFIED
    entity_type: EntityType = EntityType.UNSPECIFIED
    entity_id: int = 0


class RecentProjectsQuery(Message):
    limit: int = 0


class RecentProjectsResponse(Message):
    projects: list[Project] = []
