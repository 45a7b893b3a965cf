"""Actions on many runs at once (docs/reference/experiments.md 13.6)."""

from __future__ import annotations

from typing import Final

from services.api.access.rights.actions import Action
from services.api.actions.trials import run_actions
from services.api.actions.trials.run_deletion import deletion_at
from services.api.actions.trials.run_moves import move_runs
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Handler, Route
from services.api.queries.search.runs.searches import experiments_of
from services.api.waits.scheduler import wait_until_reconciled
from services.api.wire.trials.run_actions import MoveRunsRequest, RunsRequest, RunsResponse

ACTIONS: Final[dict[str, run_actions.Action]] = {
    "kill": run_actions.kill,
    "pause": run_actions.pause,
    "resume": run_actions.resume,
    "archive": run_actions.archive,
    "unarchive": run_actions.unarchive,
}
RIGHTS: Final = {
    **dict.fromkeys(("kill", "pause", "resume"), Action.CONTROL_EXPERIMENT),
    **dict.fromkeys(("archive", "unarchive"), Action.EDIT_EXPERIMENT),
}
SCHEDULED: Final = frozenset({"kill", "pause", "resume"})
"""Those with effects that the scheduler brings about."""


def many(verb: str, action: run_actions.Action) -> Handler:
    async def handle(call: Call[App, None, RunsRequest]) -> RunsResponse:
        results = await run_actions.for_each(call.app.db, call.body, action, rights=call.rights, right=RIGHTS[verb])
        if verb in SCHEDULED:
            async with call.app.db.read() as connection:
                done = await experiments_of(connection, [result.id for result in results if not result.error])
            await wait_until_reconciled(call.app.bus, *done)
        return RunsResponse(results=results)

    return handle


async def delete(call: Call[App, None, RunsRequest]) -> RunsResponse:
    action, right = deletion_at(call.app.clock.now()), Action.DELETE_RUN
    results = await run_actions.for_each(call.app.db, call.body, action, rights=call.rights, right=right)
    return RunsResponse(results=results)


async def move(call: Call[App, None, MoveRunsRequest]) -> RunsResponse:
    return RunsResponse(results=await move_runs(call.app.db, call.body, call.rights))


_SIMPLE: Final = tuple(
    Route(
        method="POST",
        path=f"/api/v1/runs/{verb}",
        handler=many(verb, action),
        body=RunsRequest,
        response=RunsResponse,
        summary=f"{verb.capitalize()} several runs",
    )
    for verb, action in ACTIONS.items()
)

ROUTES: Final = (
    *_SIMPLE,
    Route(
        method="POST",
        path="/api/v1/runs/delete",
        handler=delete,
        body=RunsRequest,
        response=RunsResponse,
        summary="Delete several runs",
    ),
    Route(
        method="POST",
        path="/api/v1/runs/move",
        handler=move,
        body=MoveRunsRequest,
        response=RunsResponse,
        summary="Move several runs to another project, with their experiments",
    ),
)
