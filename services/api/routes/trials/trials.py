"""Trials: look at one, end one (docs/reference/experiments.md 6 and 13.4)."""

from __future__ import annotations

from typing import Final

from libs.db.transactions import in_transaction
from services.api.actions.trials.trials import kill_trial, retain_trial_logs
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.trials.trials import load_trial
from services.api.waits.scheduler import wait_until_reconciled
from services.api.wire.base import Empty
from services.api.wire.experiments.actions import RetainLogsRequest
from services.api.wire.trials.trials import GetTrialResponse


async def get(call: Call[App, None, None]) -> GetTrialResponse:
    async with call.app.db.read_prepared() as connection:
        trial = await load_trial(connection, call.path_int("trialId"), now=call.app.clock.now())
    return GetTrialResponse(trial=trial)


async def kill(call: Call[App, None, None]) -> None:
    trial_id = call.path_int("id")
    experiment_id = await in_transaction(call.app.db, lambda connection: kill_trial(connection, trial_id))
    await wait_until_reconciled(call.app.bus, experiment_id)


async def retain(call: Call[App, None, RetainLogsRequest]) -> None:
    trial_id, days = call.path_int("trialId"), call.body.num_days
    await in_transaction(call.app.db, lambda connection: retain_trial_logs(connection, trial_id, days))


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/trials/{trialId}",
        handler=get,
        response=GetTrialResponse,
        summary="Get a trial",
    ),
    Route(
        method="POST",
        path="/api/v1/trials/{id}/kill",
        handler=kill,
        response=Empty,
        summary="Kill a trial",
    ),
    Route(
        method="PUT",
        path="/api/v1/trials/{trialId}/retain_logs",
        handler=retain,
        body=RetainLogsRequest,
        response=Empty,
        summary="Set how long the logs of a trial are kept",
    ),
)
