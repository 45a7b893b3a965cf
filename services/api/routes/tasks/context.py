"""The files a task starts with (docs/reference/harness-protocol.md 9.2)."""

from __future__ import annotations

from typing import Final

from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route
from services.api.queries.tasks.context import context_json


async def get_context_directory(call: Call[App, None, None]) -> RawResponse:
    return RawResponse(context_json(call.app.db, call.path_str("taskId")), media_type="application/json")


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/tasks/{taskId}/context_directory",
        handler=get_context_directory,
        summary="Download the files that a task was submitted with",
    ),
)
