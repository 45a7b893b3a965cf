"""Experiments: create, list, look at, edit (docs/reference/experiments.md 6 and 13)."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from libs.config import mask_secrets
from libs.db.transactions import in_transaction
from services.api.access.rights.actions import Action
from services.api.access.rights.needs import require_in, require_sources
from services.api.actions.experiments.create import prepare_experiment, store_experiment
from services.api.actions.experiments.edit import delete_label, edit, put_label
from services.api.actions.experiments.project import ProjectRef, RequireProject
from services.api.actions.unmanaged.experiments import check_upsert, prepare_unmanaged, store_unmanaged
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.experiments.experiments import list_experiments, load_config, load_experiment
from services.api.queries.experiments.job_summary import job_summary
from services.api.queries.experiments.labels import labels_in_use
from services.api.queries.trials.trials import list_trials
from services.api.queries.trials.validation_history import validation_history
from services.api.waits.scheduler import wait_until_reconciled
from services.api.wire.base import double, struct_value, timestamp
from services.api.wire.experiments.experiments import (
    CreateExperimentRequest,
    CreateExperimentResponse,
    Experiment,
    GetExperimentResponse,
    GetExperimentsQuery,
    GetExperimentsResponse,
    LabelsQuery,
    LabelsResponse,
    PatchExperiment,
    PatchExperimentResponse,
    ValidationHistoryEntry,
    ValidationHistoryResponse,
)
from services.api.wire.trials.trials import GetExperimentTrialsQuery, GetExperimentTrialsResponse


async def create(call: Call[App, None, CreateExperimentRequest]) -> CreateExperimentResponse:
    """Check, complete and store an experiment; with ``validateOnly``, all but store it."""
    if call.body.unmanaged:
        return await _create_unmanaged(call, None)
    app, now = call.app, call.app.clock.now()
    new = await prepare_experiment(app, call.body, require=require_project(call), now=now)
    await require_sources(call, new.config.get("searcher") or {})
    if call.body.validate_only:
        return CreateExperimentResponse(experiment=Experiment(), config=None, warnings=list(new.warnings))
    stored = await store_experiment(app, new, call.principal, now=now)
    if new.activate:
        await wait_until_reconciled(app.bus, stored.id, created_until=stored.created_until)
    async with app.db.read() as connection:
        experiment = await load_experiment(connection, stored.id, reader_id=call.principal.user_id)
    config = struct_value(mask_secrets(new.config, to_owner=True))
    return CreateExperimentResponse(experiment=experiment, config=config, warnings=list(new.warnings))


async def put(call: Call[App, None, CreateExperimentRequest]) -> CreateExperimentResponse:
    """Create an experiment that runs elsewhere under a name of its own, or give the one of that name a new
    configuration."""
    external_id = call.path_str("externalExperimentId")
    check_upsert(call.body, external_id)
    return await _create_unmanaged(call, external_id)


async def _create_unmanaged(
    call: Call[App, None, CreateExperimentRequest], external_id: str | None
) -> CreateExperimentResponse:
    app, now = call.app, call.app.clock.now()
    new = await prepare_unmanaged(app, call.body, require=require_project(call), now=now)
    if call.body.validate_only:
        return CreateExperimentResponse(experiment=Experiment(), config=None)
    experiment_id = await store_unmanaged(app, new, call.principal, external_id=external_id, now=now)
    async with app.db.read() as connection:
        experiment = await load_experiment(connection, experiment_id, reader_id=call.principal.user_id)
    return CreateExperimentResponse(experiment=experiment, config=experiment.config)


def require_project(call: Call[App, None, CreateExperimentRequest]) -> RequireProject:
    """What raises unless the caller may create experiments in a project."""

    def require(project: ProjectRef) -> None:
        workspace_id = project.workspace_id
        require_in(call.rights, Action.CREATE_EXPERIMENT, "project", project.project_id, workspace_id=workspace_id)

    return require


async def list_(call: Call[App, GetExperimentsQuery, None]) -> GetExperimentsResponse:
    async with call.app.db.read() as connection:
        experiments, pagination = await list_experiments(connection, call.query, rights=call.rights)
    return GetExperimentsResponse(experiments=experiments, pagination=pagination)


async def get(call: Call[App, None, None]) -> GetExperimentResponse:
    """The experiment and, while it is in the queue, its place there."""
    async with call.app.db.read_prepared() as connection:
        experiment_id = call.path_int("experimentId")
        experiment = await load_experiment(connection, experiment_id, reader_id=call.principal.user_id)
        summary = await job_summary(connection, call.app.cluster, experiment.job_id)
    return GetExperimentResponse(experiment=experiment, config=experiment.config or {}, job_summary=summary)


async def patch(call: Call[App, None, PatchExperiment]) -> PatchExperimentResponse:
    experiment_id = call.path_int("experiment_id")
    first = call.app.cluster.resource_manager.larger_priority_first
    await in_transaction(
        call.app.db, lambda connection: edit(connection, experiment_id, call.body, larger_priority_first=first)
    )
    if call.body.resources is not UNSET:
        await wait_until_reconciled(call.app.bus, experiment_id)
    async with call.app.db.read() as connection:
        experiment = await load_experiment(connection, experiment_id, reader_id=call.principal.user_id)
    return PatchExperimentResponse(experiment=experiment)


async def trials(call: Call[App, GetExperimentTrialsQuery, None]) -> GetExperimentTrialsResponse:
    experiment_id = call.path_int("experimentId")
    async with call.app.db.read_prepared() as connection:
        found, pagination = await list_trials(connection, experiment_id, call.query, now=call.app.clock.now())
    return GetExperimentTrialsResponse(trials=found, pagination=pagination)


async def history(call: Call[App, None, None]) -> ValidationHistoryResponse:
    """Each validation that was better than all before."""
    async with call.app.db.read() as connection:
        experiment_id = call.path_int("experimentId")
        config = await load_config(connection, experiment_id)
        points = await validation_history(connection, experiment_id, config)
    return ValidationHistoryResponse(
        validation_history=[
            ValidationHistoryEntry(
                trial_id=point.trial_id, end_time=timestamp(point.end_time), searcher_metric=double(point.value)
            )
            for point in points
        ]
    )


async def labels(call: Call[App, LabelsQuery, None]) -> LabelsResponse:
    async with call.app.db.read() as connection:
        labels = await labels_in_use(connection, call.query.project_id, call.app.project_parts, rights=call.rights)
    return LabelsResponse(labels=labels)


async def add_label(call: Call[App, None, None]) -> LabelsResponse:
    experiment_id, label = call.path_int("experimentId"), call.path_str("label")
    left = await in_transaction(call.app.db, lambda connection: put_label(connection, experiment_id, label))
    return LabelsResponse(labels=left)


async def remove_label(call: Call[App, None, None]) -> LabelsResponse:
    experiment_id, label = call.path_int("experimentId"), call.path_str("label")
    left = await in_transaction(call.app.db, lambda connection: delete_label(connection, experiment_id, label))
    return LabelsResponse(labels=left)


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/experiments",
        handler=create,
        body=CreateExperimentRequest,
        response=CreateExperimentResponse,
        summary="Create an experiment, or check its configuration",
    ),
    Route(
        method="PUT",
        path="/api/v1/experiments/by-external-id/{externalExperimentId}",
        handler=put,
        body=CreateExperimentRequest,
        response=CreateExperimentResponse,
        summary="Create or change an experiment that runs elsewhere, by its external id",
    ),
    Route(
        method="GET",
        path="/api/v1/experiments",
        handler=list_,
        query=GetExperimentsQuery,
        response=GetExperimentsResponse,
        summary="List experiments",
    ),
    Route(
        method="GET",
        path="/api/v1/experiments/{experimentId}",
        handler=get,
        response=GetExperimentResponse,
        summary="Get an experiment",
    ),
    Route(
        method="PATCH",
        path="/api/v1/experiments/{experiment_id}",
        handler=patch,
        body=PatchExperiment,
        response=PatchExperimentResponse,
        summary="Change the name, the labels, the notes, the resources or the retention policy of an experiment",
    ),
    Route(
        method="GET",
        path="/api/v1/experiments/{experimentId}/trials",
        handler=trials,
        query=GetExperimentTrialsQuery,
        response=GetExperimentTrialsResponse,
        summary="List the trials of an experiment",
    ),
    Route(
        method="GET",
        path="/api/v1/experiments/{experimentId}/validation-history",
        handler=history,
        response=ValidationHistoryResponse,
        summary="Get how the best validation of an experiment improved",
    ),
    Route(
        method="GET",
        path="/api/v1/experiment/labels",
        handler=labels,
        query=LabelsQuery,
        response=LabelsResponse,
        summary="List the labels of experiments in use, the most frequent first",
    ),
    Route(
        method="PUT",
        path="/api/v1/experiments/{experimentId}/labels/{label}",
        handler=add_label,
        response=LabelsResponse,
        summary="Add a label to an experiment",
    ),
    Route(
        method="DELETE",
        path="/api/v1/experiments/{experimentId}/labels/{label}",
        handler=remove_label,
        response=LabelsResponse,
        summary="Remove a label from an experiment",
    ),
)
