"""Tasks, whatever their kind."""

from __future__ import annotations

from typing import Final

from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse, encode_message
from services.api.http.routing import Route
from services.api.queries.tasks.tasks import count_running, live_allocations, load_task
from services.api.wire.tasks.tasks import GetTaskResponse, GetTasksResponse, TasksCountResponse


async def get_tasks(call: Call[App, None, None]) -> GetTasksResponse:
    """What holds or wants slots now."""
    async with call.app.db.read() as connection:
        return GetTasksResponse(
            allocation_id_to_summary=await live_allocations(connection, call.app.cluster, rights=call.rights)
        )


async def get_raw_tasks(call: Call[App, None, None]) -> RawResponse:
    """The same as one map, where clients without the message look for it (docs/reference/platform.md 15)."""
    reply = await get_tasks(call)
    return RawResponse(encode_message(reply.allocation_id_to_summary), media_type="application/json")


async def get_task(call: Call[App, None, None]) -> GetTaskResponse:
    async with call.app.db.read() as connection:
        return GetTaskResponse(task=await load_task(connection, call.path_str("taskId")))


async def get_count(call: Call[App, None, None]) -> TasksCountResponse:
    async with call.app.db.read() as connection:
        return await count_running(connection, rights=call.rights)


ROUTES: Final = (
    Route(
        method="GET",
        path="/tasks",
        handler=get_raw_tasks,
        raw=True,
        summary="Get the allocations that hold slots or wait for them, by id",
    ),
    Route(
        method="GET",
        path="/api/v1/tasks",
        handler=get_tasks,
        response=GetTasksResponse,
        summary="Get the allocations that hold slots or wait for them, by id",
    ),
    Route(
        method="GET",
        path="/api/v1/tasks/count",
        handler=get_count,
        response=TasksCountResponse,
        summary="Count active tasks by kind",
    ),
    Route(
        method="GET",
        path="/api/v1/tasks/{taskId}",
        handler=get_task,
        response=GetTaskResponse,
        summary="Get a task with its allocations",
    ),
)
