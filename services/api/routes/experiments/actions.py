"""Actions on experiments, one by one and many at once (docs/reference/experiments.md 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest
from services.api.access.rights.actions import Action
from services.api.access.rights.needs import require_sources
from services.api.actions.checkpoints.files import delete_tensorboard_files
from services.api.actions.experiments import states
from services.api.actions.experiments.bulk import ANY_PROJECT, for_each
from services.api.actions.experiments.continuing import continue_experiment, parse_override
from services.api.actions.experiments.edit import check_days, retain_logs
from services.api.actions.experiments.move import check_may_leave, move
from services.api.actions.experiments.project import check_may_grow, load_project
from services.api.actions.storage_addresses import check_storage_of_users
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Handler, Route
from services.api.queries.experiments.experiments import load_experiment
from services.api.waits.scheduler import wait_until_reconciled
from services.api.waits.tensorboard_deletion import tensorboard_deletion, wait_until_deleted
from services.api.wire.base import Empty
from services.api.wire.experiments.actions import (
    ActionResult,
    BulkMoveRequest,
    BulkRequest,
    BulkResponse,
    BulkRetainLogsRequest,
    ContinueExperimentRequest,
    ContinueExperimentResponse,
    DeleteExperimentQuery,
    MoveExperimentRequest,
    RetainLogsRequest,
)

Simple = Callable[[AsyncConnection, int], Awaitable[None]]
SIMPLE: Final[dict[str, Simple]] = {
    "activate": states.activate,
    "pause": states.pause,
    "cancel": states.cancel,
    "kill": states.kill,
    "archive": states.archive,
    "unarchive": states.unarchive,
}
"""Actions that need nothing but an experiment."""
RIGHTS: Final = {
    **dict.fromkeys(("activate", "pause", "cancel", "kill"), Action.CONTROL_EXPERIMENT),
    **dict.fromkeys(("archive", "unarchive"), Action.EDIT_EXPERIMENT),
}
SCHEDULED: Final = frozenset({"activate", "pause", "cancel", "kill"})
"""Those with effects that the scheduler brings about."""


async def continue_(call: Call[App, None, ContinueExperimentRequest]) -> ContinueExperimentResponse:
    """Let an experiment that has ended run again, with changes of its configuration if it is a single trial."""
    app, experiment_id, now = call.app, call.body.id, call.app.clock.now()
    override = await asyncio.to_thread(parse_override, call.body.override_config)
    await require_sources(call, override.get("searcher") or {})
    await check_storage_of_users(app, override.get("checkpoint_storage"))
    warnings = await in_transaction(
        app.db, lambda connection: continue_experiment(connection, app, experiment_id, override, now=now)
    )
    await wait_until_reconciled(app.bus, experiment_id)
    async with app.db.read() as connection:
        experiment = await load_experiment(connection, experiment_id, reader_id=call.principal.user_id)
    return ContinueExperimentResponse(experiment=experiment, warnings=warnings)


def one(verb: str, action: Simple) -> Handler:
    """Handles an action on the experiment in the path."""

    async def handle(call: Call[App, None, None]) -> None:
        experiment_id = call.path_int("id")
        await in_transaction(call.app.db, lambda connection: action(connection, experiment_id))
        if verb in SCHEDULED:
            await wait_until_reconciled(call.app.bus, experiment_id)

    return handle


def many(verb: str, action: Simple) -> Handler:
    """Handles an action on the experiments in the body."""

    async def handle(call: Call[App, None, BulkRequest]) -> BulkResponse:
        results = await _for_each(call, action, verb, RIGHTS[verb])
        if verb in SCHEDULED:
            await wait_until_reconciled(call.app.bus, *(result.id for result in results if not result.error))
        return BulkResponse(results=results)

    return handle


async def _for_each(call: Call[App, None, Any], action: Simple, verb: str, right: Action) -> list[ActionResult]:
    project_id = call.path_int("projectId")
    return await for_each(
        call.app.db, call.body, action, verb=verb, project_id=project_id, rights=call.rights, right=right
    )


async def delete(call: Call[App, DeleteExperimentQuery, None]) -> None:
    """Ask for the deletion; the experiment is gone when GET answers 404."""
    experiment_id, force = call.path_int("experimentId"), call.query.force
    await in_transaction(
        call.app.db, lambda connection: states.delete(connection, experiment_id, call.rights, force=force)
    )


async def delete_many(call: Call[App, None, BulkRequest]) -> BulkResponse:
    async def delete_one(connection: AsyncConnection, experiment_id: int) -> None:
        await states.delete(connection, experiment_id, call.rights)

    return BulkResponse(results=await _for_each(call, delete_one, "delete", Action.DELETE_EXPERIMENT))


async def move_one(call: Call[App, None, MoveExperimentRequest]) -> None:
    experiment_id, destination = call.path_int("experimentId"), _destination(call.body)
    await in_transaction(call.app.db, lambda connection: move(connection, experiment_id, destination, call.rights))


async def move_many(call: Call[App, None, BulkMoveRequest]) -> BulkResponse:
    """Archived projects fail the request as a whole."""
    project_id, destination = call.path_int("projectId"), _destination(call.body)
    async with call.app.db.read() as connection:
        if project_id != ANY_PROJECT:
            await check_may_leave(connection, project_id)
        check_may_grow(await load_project(connection, destination))

    async def move_to(connection: AsyncConnection, experiment_id: int) -> None:
        await move(connection, experiment_id, destination, call.rights)

    return BulkResponse(results=await _for_each(call, move_to, "move", Action.MOVE_EXPERIMENT))


async def retain(call: Call[App, None, RetainLogsRequest]) -> None:
    experiment_id, days = call.path_int("experimentId"), call.body.num_days
    await in_transaction(call.app.db, lambda connection: retain_logs(connection, experiment_id, days))


async def retain_many(call: Call[App, None, BulkRetainLogsRequest]) -> BulkResponse:
    days = call.body.num_days
    check_days(days)

    async def retain_one(connection: AsyncConnection, experiment_id: int) -> None:
        await retain_logs(connection, experiment_id, days)

    return BulkResponse(results=await _for_each(call, retain_one, "retain_logs", Action.CONTROL_EXPERIMENT))


async def delete_tensorboards(call: Call[App, None, None]) -> None:
    """Delete the TensorBoard files; returns when they are gone."""
    app, experiment_id = call.app, call.path_int("experimentId")
    async with app.db.read() as connection:
        earlier = await tensorboard_deletion(connection, experiment_id)
    await in_transaction(app.db, lambda connection: delete_tensorboard_files(connection, experiment_id, call.rights))
    await wait_until_deleted(app.db, app.bus, app.notifier, experiment_id, earlier=earlier)


def _destination(body: MoveExperimentRequest | BulkMoveRequest) -> int:
    if body.destination_project_id <= 0:
        raise InvalidRequest("destinationProjectId: expected the id of a project")
    return body.destination_project_id


def _bulk(verb: str, handler: Handler, *, method: str = "POST", body: Any = BulkRequest, summary: str = "") -> Route:
    return Route(
        method=method,
        path=f"/api/v1/projects/{{projectId}}/experiments/{verb}",
        handler=handler,
        body=body,
        response=BulkResponse,
        summary=summary or f"{verb.capitalize()} several experiments",
    )


ROUTES: Final = (
    *(
        Route(
            method="POST",
            path=f"/api/v1/experiments/{{id}}/{verb}",
            handler=one(verb, action),
            response=Empty,
            summary=f"{verb.capitalize()} an experiment",
        )
        for verb, action in SIMPLE.items()
    ),
    Route(
        method="POST",
        path="/api/v1/experiments/continue",
        handler=continue_,
        body=ContinueExperimentRequest,
        response=ContinueExperimentResponse,
        summary="Continue an experiment that has ended",
    ),
    Route(
        method="DELETE",
        path="/api/v1/experiments/{experimentId}",
        handler=delete,
        query=DeleteExperimentQuery,
        response=Empty,
        summary="Delete an experiment, its checkpoints and its logs",
    ),
    Route(
        method="POST",
        path="/api/v1/experiments/{experimentId}/move",
        handler=move_one,
        body=MoveExperimentRequest,
        response=Empty,
        summary="Move an experiment to another project",
    ),
    Route(
        method="PUT",
        path="/api/v1/experiments/{experimentId}/retain_logs",
        handler=retain,
        body=RetainLogsRequest,
        response=Empty,
        summary="Set how long the logs of an experiment are kept",
    ),
    Route(
        method="DELETE",
        path="/api/v1/experiments/{experimentId}/tensorboard-files",
        handler=delete_tensorboards,
        response=Empty,
        summary="Delete the TensorBoard files of an experiment",
    ),
    *(_bulk(verb, many(verb, action)) for verb, action in SIMPLE.items()),
    _bulk("delete", delete_many, method="DELETE"),
    _bulk("move", move_many, body=BulkMoveRequest),
    _bulk(
        "retain_logs",
        retain_many,
        summary="Set how long the logs of several experiments are kept",
        method="PUT",
        body=BulkRetainLogsRequest,
    ),
)
