"""Trials that run elsewhere: created, started, heard from (docs/reference/experiments.md 12)."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from libs.db.transactions import in_transaction
from services.api.actions.unmanaged.trials import (
    create_trial,
    note_heartbeat,
    put_trial,
    report_state,
    start_trial,
    trial_of_external_ids,
)
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.trials.trials import load_trial
from services.api.wire.trials.trials import GetTrialResponse, TrialState
from services.api.wire.trials.unmanaged import (
    CreateTrialRequest,
    PatchTrialRequest,
    PutTrialRequest,
    StartTrialRequest,
    StartTrialResponse,
    TrialResponse,
)


async def create(call: Call[App, None, CreateTrialRequest]) -> TrialResponse:
    app, now = call.app, call.app.clock.now()
    return await _shown(app, await in_transaction(app.db, lambda tx: create_trial(tx, call.body, now=now)))


async def put(call: Call[App, None, PutTrialRequest]) -> TrialResponse:
    """Create a trial under a name of its own, or give the one of that name new hyperparameters."""
    app, now, external_id = call.app, call.app.clock.now(), call.body.external_trial_id
    wanted = call.body.create_trial_request or CreateTrialRequest()
    return await _shown(app, await in_transaction(app.db, lambda tx: put_trial(tx, wanted, external_id, now=now)))


async def start(call: Call[App, None, StartTrialRequest]) -> StartTrialResponse:
    app, trial_id, now = call.app, call.path_int("trialId"), call.app.clock.now()
    started = await in_transaction(app.db, lambda tx: start_trial(tx, trial_id, resume=call.body.resume, now=now))
    return StartTrialResponse(
        trial_run_id=started.run_id,
        latest_checkpoint=UNSET if started.latest_checkpoint is None else started.latest_checkpoint,
        steps_completed=started.steps_completed,
    )


async def patch(call: Call[App, None, PatchTrialRequest]) -> TrialResponse:
    """Hear that a trial lives, and what has become of it."""
    app, trial_id, now, state = call.app, call.path_int("trialId"), call.app.clock.now(), call.body.state
    if state is UNSET or state is TrialState.UNSPECIFIED:
        await in_transaction(app.db, lambda tx: note_heartbeat(tx, trial_id, now=now))
    else:
        await in_transaction(app.db, lambda tx: report_state(tx, trial_id, state.name, now=now))
    return await _shown(app, trial_id)


async def get_by_external_ids(call: Call[App, None, None]) -> GetTrialResponse:
    experiment, trial = call.path_str("externalExperimentId"), call.path_str("externalTrialId")
    async with call.app.db.read() as connection:
        trial_id = await trial_of_external_ids(connection, experiment, trial)
    return GetTrialResponse(trial=(await _shown(call.app, trial_id)).trial)


async def _shown(app: App, trial_id: int) -> TrialResponse:
    async with app.db.read() as connection:
        return TrialResponse(trial=await load_trial(connection, trial_id, now=app.clock.now()))


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/trials",
        handler=create,
        body=CreateTrialRequest,
        response=TrialResponse,
        summary="Create a trial that runs elsewhere",
    ),
    Route(
        method="PUT",
        path="/api/v1/trials",
        handler=put,
        body=PutTrialRequest,
        response=TrialResponse,
        summary="Create or change a trial that runs elsewhere, by its external id",
    ),
    Route(
        method="GET",
        path="/api/v1/trials/by-external-id/{externalExperimentId}/{externalTrialId}",
        handler=get_by_external_ids,
        response=GetTrialResponse,
        summary="Get a trial that runs elsewhere",
    ),
    Route(
        method="PATCH",
        path="/api/v1/trials/{trialId}",
        handler=patch,
        body=PatchTrialRequest,
        response=TrialResponse,
        summary="Report that a trial that runs elsewhere is alive, or its new state",
    ),
    Route(
        method="POST",
        path="/api/v1/trials/{trialId}/start",
        handler=start,
        body=StartTrialRequest,
        response=StartTrialResponse,
        summary="Start or resume a trial that runs elsewhere",
    ),
)
