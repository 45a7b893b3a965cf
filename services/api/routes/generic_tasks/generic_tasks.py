"""Generic tasks: programs that may be paused, forked, and start others below them.

With basic authorization everybody may do everything with each of them. Source: docs/reference/tasks-and-cli.md 6.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from libs.db.engine import Connection
from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest
from services.api.access.rights.actions import Action
from services.api.access.rights.locations import ObjectKind
from services.api.access.rights.needs import Need, check_needs, require_in
from services.api.actions.experiments.project import ProjectRef, RequireProject
from services.api.actions.generic_tasks import control
from services.api.actions.generic_tasks.create import prepare_generic_task, store_generic_task
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.generic_tasks.generic_tasks import ids_above, load_config
from services.api.waits.scheduler import wait_until_reconciled
from services.api.wire.base import Empty
from services.api.wire.generic_tasks.generic_tasks import (
    CreateGenericTaskRequest,
    CreateGenericTaskResponse,
    GenericTaskConfigResponse,
    KillGenericTaskRequest,
)


async def create(call: Call[App, None, CreateGenericTaskRequest]) -> CreateGenericTaskResponse:
    new = await prepare_generic_task(call.app, call.body, call.principal, require=require_task_project(call))
    await store_generic_task(call.app, new, call.principal, now=call.app.clock.now())
    return CreateGenericTaskResponse(task_id=new.task_id, warnings=list(new.warnings))


def require_task_project(call: Call[App, None, Any]) -> RequireProject:
    """What raises unless the caller may create tasks in a project."""

    def require(project: ProjectRef) -> None:
        for action in (Action.VIEW_PROJECT, Action.CREATE_TASK):
            require_in(call.rights, action, "project", project.project_id, workspace_id=project.workspace_id)

    return require


async def get_config(call: Call[App, None, None]) -> GenericTaskConfigResponse:
    async with call.app.db.read() as connection:
        config = await load_config(connection, _task_id(call), reader_id=call.principal.user_id)
    return GenericTaskConfigResponse(config=config)


async def kill(call: Call[App, None, KillGenericTaskRequest]) -> None:
    if call.body.task_id not in ("", _task_id(call)):
        raise InvalidRequest(f"taskId '{call.body.task_id}' is not the task of the path, '{_task_id(call)}'")
    from_root = call.body.kill_from_root
    if from_root:
        async with call.app.db.read() as connection:
            above = await ids_above(connection, _task_id(call))
        await check_needs((Need(Action.CONTROL_TASK, ObjectKind.TASK, lambda _: above),), call)
    await _change(call, lambda connection, task_id: control.kill(connection, task_id, from_root=from_root))


async def pause(call: Call[App, None, None]) -> None:
    await _change(call, control.pause)


async def unpause(call: Call[App, None, None]) -> None:
    await _change(call, control.unpause)


async def _change(call: Call[App, None, Any], change: Callable[[Connection, str], Awaitable[list[str]]]) -> None:
    """Have it done, and what waits for slots or runs nowhere is as it should be when the client has its answer."""
    changed = await in_transaction(call.app.db, lambda connection: change(connection, _task_id(call)))
    await wait_until_reconciled(call.app.bus, generic_tasks=changed)


def _task_id(call: Call[App, None, Any]) -> str:
    return call.path_str("taskId")


_ONE: Final = "/api/v1/tasks/{taskId}"

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/generic-tasks",
        handler=create,
        body=CreateGenericTaskRequest,
        response=CreateGenericTaskResponse,
        summary="Create a generic task",
    ),
    Route(
        method="GET",
        path=f"{_ONE}/config",
        handler=get_config,
        response=GenericTaskConfigResponse,
        summary="Get the configuration of a generic task",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/kill",
        handler=kill,
        body=KillGenericTaskRequest,
        response=Empty,
        summary="Kill a generic task",
    ),
    Route(method="POST", path=f"{_ONE}/pause", handler=pause, response=Empty, summary="Pause a generic task"),
    Route(
        method="POST",
        path=f"{_ONE}/unpause",
        handler=unpause,
        response=Empty,
        summary="Resume a paused generic task",
    ),
)
