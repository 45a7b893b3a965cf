"""Actions on many runs at once (docs/reference/experiments.md 13.6)."""

from __future__ import annotations

from typing import Final

from services.api.actions.trials import run_actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Handler, Route
from services.api.queries.search.runs import experiments_of
from services.api.waits.scheduler import wait_until_reconciled
from services.api.wire.trials.run_actions import RunsRequest, RunsResponse

ACTIONS: Final[dict[str, run_actions.Action]] = {
    "kill": run_actions.kill,
    "pause": run_actions.pause,
    "resume": run_actions.resume,
    "archive": run_actions.archive,
    "unarchive": run_actions.unarchive,
}
SCHEDULED: Final = frozenset({"kill", "pause", "resume"})
"""Those with effects that the scheduler brings about."""


def many(verb: str, action: run_actions.Action) -> Handler:
    async def handle(call: Call[App, None, RunsRequest]) -> RunsResponse:
        results = await run_actions.for_each(call.app.db, call.body, action)
        if verb in SCHEDULED:
            async with call.app.db.read() as connection:
                done = await experiments_of(connection, [result.id for result in results if not result.error])
            await wait_until_reconciled(call.app.bus, *done)
        return RunsResponse(results=results)

    return handle


ROUTES: Final = tuple(
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
