"""Reports and questions of training code about its run besides metrics and checkpoints
(docs/reference/harness-protocol.md 11)."""

from __future__ import annotations

from typing import Final

from sqlalchemy import select

from libs.db.tables.trials import trials
from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest, NotFound
from services.api.actions.checkpoints.storage import register_storage
from services.api.actions.trials import reports as trial_reports
from services.api.actions.trials.run_metadata import replace_run_metadata
from services.api.actions.trials.sources import report_source
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.wire.base import Empty, struct_value
from services.api.wire.trials.runs import (
    EarlyExitRequest,
    ExitedReason,
    ProgressRequest,
    RunMetadataRequest,
    RunMetadataResponse,
    RunnerMetadataRequest,
    StartRunRequest,
    StartRunResponse,
    TrialSourceInfo,
    TrialSourceInfoRequest,
    TrialSourceInfoResponse,
    TrialSourceInfoType,
)


async def post_start(call: Call[App, None, StartRunRequest]) -> StartRunResponse:
    run_id, storage = call.body.run_id, call.body.checkpoint_storage
    async with call.app.db.read() as connection:
        experiment_id = await connection.scalar(select(trials.c.experiment_id).where(trials.c.id == run_id))
    if experiment_id is None:
        raise NotFound("run", run_id)
    if not storage:
        return StartRunResponse()
    number = await in_transaction(call.app.db, lambda tx: register_storage(tx, experiment_id, storage))
    return StartRunResponse(storage_id=number)


async def get_metadata(call: Call[App, None, None]) -> RunMetadataResponse:
    run_id = call.path_int("runId")
    async with call.app.db.read() as connection:
        row = (await connection.execute(select(trials.c.metadata).where(trials.c.id == run_id))).one_or_none()
    if row is None:
        raise NotFound("run", run_id)
    return RunMetadataResponse(metadata=struct_value(row.metadata or {}))


async def post_metadata(call: Call[App, None, RunMetadataRequest]) -> RunMetadataResponse:
    run_id, metadata = call.path_int("runId"), call.body.metadata or {}
    await in_transaction(call.app.db, lambda tx: replace_run_metadata(tx, run_id, metadata))
    return RunMetadataResponse(metadata=struct_value(metadata))


async def post_progress(call: Call[App, None, ProgressRequest]) -> None:
    trial_id, progress = call.path_int("trialId"), call.body.progress
    await in_transaction(call.app.db, lambda tx: trial_reports.report_progress(tx, trial_id, progress))


async def post_early_exit(call: Call[App, None, EarlyExitRequest]) -> None:
    trial_id, reason, now = call.path_int("trialId"), call.body.reason, call.app.clock.now()
    if reason is ExitedReason.UNSPECIFIED:
        raise InvalidRequest("an early exit must have a reason")
    await in_transaction(call.app.db, lambda tx: trial_reports.report_early_exit(tx, trial_id, reason.name, now))


async def post_runner_metadata(call: Call[App, None, RunnerMetadataRequest]) -> None:
    trial_id, state = call.path_int("trialId"), (call.body.metadata or call.body).state
    await in_transaction(call.app.db, lambda tx: trial_reports.set_runner_state(tx, trial_id, state))


async def post_trial_source_info(call: Call[App, None, TrialSourceInfoRequest]) -> TrialSourceInfoResponse:
    info = call.body.trial_source_info or TrialSourceInfo()
    if info.trial_source_info_type is TrialSourceInfoType.UNSPECIFIED:
        raise InvalidRequest("trialSourceInfoType must be given")
    await in_transaction(
        call.app.db,
        lambda tx: report_source(
            tx,
            trial_id=info.trial_id,
            checkpoint_uuid=info.checkpoint_uuid,
            kind=info.trial_source_info_type.name,
            model_id=info.model_id,
            model_version=info.model_version,
        ),
    )
    return TrialSourceInfoResponse(trial_id=info.trial_id, checkpoint_uuid=info.checkpoint_uuid)


_TRIAL: Final = "/api/v1/trials/{trialId}"
_METADATA: Final = "/api/v1/runs/{runId}/metadata"

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/runs/start",
        handler=post_start,
        body=StartRunRequest,
        response=StartRunResponse,
        idempotent=True,
        summary="Report that the process of a run has started",
    ),
    Route(
        method="GET",
        path=_METADATA,
        handler=get_metadata,
        response=RunMetadataResponse,
        summary="Get the metadata of a run",
    ),
    Route(
        method="POST",
        path=_METADATA,
        handler=post_metadata,
        body=RunMetadataRequest,
        response=RunMetadataResponse,
        idempotent=True,
        summary="Replace the metadata of a run",
    ),
    Route(
        method="POST",
        path=f"{_TRIAL}/progress",
        handler=post_progress,
        body=ProgressRequest,
        response=Empty,
        idempotent=True,
        summary="Report how far a trial is",
    ),
    Route(
        method="POST",
        path=f"{_TRIAL}/early_exit",
        handler=post_early_exit,
        body=EarlyExitRequest,
        response=Empty,
        idempotent=True,
        summary="Report that a trial ends early",
    ),
    Route(
        method="POST",
        path=f"{_TRIAL}/runner/metadata",
        handler=post_runner_metadata,
        body=RunnerMetadataRequest,
        response=Empty,
        idempotent=True,
        summary="Report the state of the process that runs a trial",
    ),
    Route(
        method="POST",
        path="/api/v1/trial-source-info",
        handler=post_trial_source_info,
        body=TrialSourceInfoRequest,
        response=TrialSourceInfoResponse,
        idempotent=True,
        summary="Report that a trial uses a checkpoint or a version of a model",
    ),
)
