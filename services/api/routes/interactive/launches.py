"""Launching notebooks, TensorBoards, shells and commands (docs/reference/tasks-and-cli.md 2.2)."""

from __future__ import annotations

from typing import Any, Final

from libs.config.yaml_text import MAX_VALUES
from libs.tasks.interactive.kinds import KINDS, InteractiveType
from services.api.access.rights.actions import Action
from services.api.access.rights.needs import require_in
from services.api.actions.interactive.home import Home
from services.api.actions.interactive.prepare import Prepared, prepare
from services.api.actions.interactive.store import store
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Handler, Route
from services.api.queries.interactive.messages import message_of
from services.api.queries.interactive.rows import load_row
from services.api.wire.base import Message, struct_value
from services.api.wire.interactive.commands import LaunchCommandRequest, LaunchCommandResponse
from services.api.wire.interactive.common import InteractiveTask, LaunchRequest
from services.api.wire.interactive.notebooks import LaunchNotebookRequest, LaunchNotebookResponse, Notebook
from services.api.wire.interactive.shells import LaunchShellRequest, LaunchShellResponse
from services.api.wire.interactive.tensorboards import LaunchTensorboardRequest, LaunchTensorboardResponse


def _launch(kind: InteractiveType, response: type[Message]) -> Handler:
    """Check, complete and store; the scheduler takes it from there."""

    async def launch(call: Call[App, None, Any]) -> Message:
        app, request, now = call.app, call.body, call.app.clock.now()
        action = Action.VIEW_WORKSPACE if kind == "TENSORBOARD" else Action.CREATE_TASK

        def require_home(home: Home) -> None:
            require_in(call.rights, action, "workspace", home.workspace_id, workspace_id=home.workspace_id)

        prepared = await prepare(app, kind, request, rights=call.rights, require_home=require_home)
        if isinstance(request, LaunchNotebookRequest) and request.preview:
            return _answer(kind, response, Notebook(), prepared)
        task_id = await store(app, prepared, request, call.principal, now=now)
        async with app.db.read() as connection:
            row = await load_row(connection, kind, task_id)
        task = message_of(row, cluster=app.cluster, tokens=app.proxy_tokens, rights=call.rights)
        return _answer(kind, response, task, prepared)

    return launch


def _answer(kind: InteractiveType, response: type[Message], task: InteractiveTask, prepared: Prepared) -> Message:
    fields = {KINDS[kind].noun: task, "config": struct_value(prepared.config), "warnings": list(prepared.warnings)}
    return response(**fields)


def _route(kind: InteractiveType, request: type[LaunchRequest], response: type[Message]) -> Route:
    return Route(
        method="POST",
        path=f"/api/v1/{KINDS[kind].noun}s",
        handler=_launch(kind, response),
        body=request,
        max_body_values=MAX_VALUES,
        response=response,
        summary=f"Launch a {KINDS[kind].noun}",
    )


ROUTES: Final = (
    _route("COMMAND", LaunchCommandRequest, LaunchCommandResponse),
    _route("NOTEBOOK", LaunchNotebookRequest, LaunchNotebookResponse),
    _route("SHELL", LaunchShellRequest, LaunchShellResponse),
    _route("TENSORBOARD", LaunchTensorboardRequest, LaunchTensorboardResponse),
)
