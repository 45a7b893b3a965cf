"""Activity of users: which projects somebody looked at last, so that pages can offer them again."""

from __future__ import annotations

from typing import Final

from sqlalchemy.dialects.postgresql import insert

from libs.db.tables.users import user_activity
from libs.errors import InvalidRequest
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.workspaces.projects import project_row, recent_projects
from services.api.wire.base import Empty
from services.api.wire.workspaces.activity import (
    ActivityType,
    EntityType,
    PostUserActivityRequest,
    RecentProjectsQuery,
    RecentProjectsResponse,
)

DEFAULT_RECENT: Final = 100


async def post_activity(call: Call[App, None, PostUserActivityRequest]) -> Empty:
    body = call.body
    if body.activity_type is not ActivityType.GET:
        raise InvalidRequest(f"activityType: must be {ActivityType.GET.value}")
    if body.entity_type is not EntityType.PROJECT:
        raise InvalidRequest(f"entityType: must be {EntityType.PROJECT.value}")
    async with call.app.db.transaction() as connection:
        await project_row(connection, body.entity_id)
        seen = {"seen_at": call.app.clock.now()}
        row = insert(user_activity).values(user_id=call.principal.user_id, project_id=body.entity_id, **seen)
        await connection.execute(row.on_conflict_do_update(index_elements=["user_id", "project_id"], set_=seen))
    return Empty()


async def get_recent_projects(call: Call[App, RecentProjectsQuery, None]) -> RecentProjectsResponse:
    """Those that the caller looked at, the latest first; ``limit`` 0 is a hundred."""
    if call.query.limit < 0:
        raise InvalidRequest("limit: must not be negative")
    async with call.app.db.read() as connection:
        limit = call.query.limit or DEFAULT_RECENT
        return RecentProjectsResponse(projects=await recent_projects(connection, call.rights, limit))


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/users/activity",
        handler=post_activity,
        body=PostUserActivityRequest,
        response=Empty,
        summary="Note that the caller has looked at a project",
    ),
    Route(
        method="GET",
        path="/api/v1/user/projects/activity",
        handler=get_recent_projects,
        query=RecentProjectsQuery,
        response=RecentProjectsResponse,
        summary="List the projects that the caller has looked at, the latest first",
    ),
)
