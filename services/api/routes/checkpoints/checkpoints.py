"""Checkpoints: list, look at, download and delete (docs/reference/experiments.md 10)."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from libs.checkpoint_storage.places import describe
from libs.checkpoints.checkpoint_retention import Policy
from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest
from libs.tasks.checkpoint_gc import EVERYTHING
from services.api.actions.checkpoints.files import remove_files
from services.api.actions.storage_addresses import passage_to
from services.api.app import App
from services.api.downloads.archives import choose_format
from services.api.downloads.storage import checkpoint_archive
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route
from services.api.queries.checkpoints.checkpoints import list_checkpoints, load_checkpoint
from services.api.queries.checkpoints.gc_preview import preview_gc
from services.api.queries.checkpoints.storage import storage_of
from services.api.queries.experiments.experiments import check_exists
from services.api.queries.trials.trials import check_trial_exists
from services.api.wire.base import Empty
from services.api.wire.checkpoints.checkpoints import (
    DeleteCheckpointsRequest,
    GetCheckpointResponse,
    GetCheckpointsQuery,
    GetCheckpointsResponse,
    PreviewGcQuery,
    RemoveFilesRequest,
)


async def get(call: Call[App, None, None]) -> GetCheckpointResponse:
    async with call.app.db.read() as connection:
        checkpoint = await load_checkpoint(
            connection, call.path_str("checkpointUuid"), reader_id=call.principal.user_id
        )
    return GetCheckpointResponse(checkpoint=checkpoint)


async def of_experiment(call: Call[App, GetCheckpointsQuery, None]) -> GetCheckpointsResponse:
    async with call.app.db.read() as connection:
        experiment_id = call.path_int("id")
        await check_exists(connection, experiment_id)
        found, pagination = await list_checkpoints(
            connection, call.query, experiment_id=experiment_id, reader_id=call.principal.user_id
        )
    return GetCheckpointsResponse(checkpoints=found, pagination=pagination)


async def of_trial(call: Call[App, GetCheckpointsQuery, None]) -> GetCheckpointsResponse:
    async with call.app.db.read() as connection:
        trial_id = call.path_int("id")
        await check_trial_exists(connection, trial_id)
        found, pagination = await list_checkpoints(
            connection, call.query, trial_id=trial_id, reader_id=call.principal.user_id
        )
    return GetCheckpointsResponse(checkpoints=found, pagination=pagination)


async def delete(call: Call[App, None, DeleteCheckpointsRequest]) -> None:
    """Ask for all files of the checkpoints to be deleted; returns before they are."""
    uuids = call.body.checkpoint_uuids
    await in_transaction(call.app.db, lambda connection: remove_files(connection, uuids, EVERYTHING))


async def remove(call: Call[App, None, RemoveFilesRequest]) -> None:
    """Ask for those files of the checkpoints to be deleted that match a glob; returns before they are."""
    uuids, globs = call.body.checkpoint_uuids, call.body.checkpoint_globs
    await in_transaction(call.app.db, lambda connection: remove_files(connection, uuids, globs))


async def download(call: Call[App, None, None]) -> RawResponse:
    """The files of a checkpoint as one archive, of the kind that the Accept header asks for."""
    form = choose_format(call.headers.get("accept", ""))
    if form is None:
        message = "checkpoints are sent as application/gzip, application/x-tar or application/zip"
        return RawResponse(_plain_error(message), media_type="application/json", status=415)
    uuid = call.path_str("uuid")
    async with call.app.db.read() as connection:
        storage = await storage_of(connection, uuid)
        passage = await passage_to(connection, call.app, storage)
    home = call.app.cluster.checkpoint_storage
    pieces = checkpoint_archive(uuid, storage, call.app.checkpoint_roots, form, home=home, passage=passage)
    content = call.app.downloads.stream(pieces, source=f"checkpoint storage {describe(storage)}")
    return RawResponse(content, media_type=form.value)


async def preview_retention(call: Call[App, PreviewGcQuery, None]) -> RawResponse:
    """Which checkpoints a retention policy would delete."""
    policy = Policy(
        save_experiment_best=_required("save_experiment_best", call.query.save_experiment_best),
        save_trial_best=_required("save_trial_best", call.query.save_trial_best),
        save_trial_latest=_required("save_trial_latest", call.query.save_trial_latest),
    )
    async with call.app.db.read() as connection:
        found = await preview_gc(connection, call.path_int("experimentId"), policy)
    return RawResponse(msgspec.json.encode(found), media_type="application/json")


def _required(name: str, value: int | UnsetType) -> int:
    if value is UNSET:
        raise InvalidRequest(f"missing parameter: {name}")
    if value < 0:
        raise InvalidRequest(f"{name} must not be negative")
    return value


def _plain_error(message: str) -> bytes:
    return msgspec.json.encode({"message": message})


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/checkpoints/{checkpointUuid}",
        handler=get,
        response=GetCheckpointResponse,
        summary="Get a checkpoint",
    ),
    Route(
        method="GET",
        path="/api/v1/experiments/{id}/checkpoints",
        handler=of_experiment,
        query=GetCheckpointsQuery,
        response=GetCheckpointsResponse,
        summary="List the checkpoints of an experiment",
    ),
    Route(
        method="GET",
        path="/api/v1/trials/{id}/checkpoints",
        handler=of_trial,
        query=GetCheckpointsQuery,
        response=GetCheckpointsResponse,
        summary="List the checkpoints of a trial",
    ),
    Route(
        method="DELETE",
        path="/api/v1/checkpoints",
        handler=delete,
        body=DeleteCheckpointsRequest,
        response=Empty,
        summary="Delete checkpoints",
    ),
    Route(
        method="POST",
        path="/api/v1/checkpoints/rm",
        handler=remove,
        body=RemoveFilesRequest,
        response=Empty,
        summary="Delete files of checkpoints",
    ),
    Route(
        method="GET",
        path="/checkpoints/{uuid}",
        handler=download,
        raw=True,
        summary="Download a checkpoint",
    ),
    Route(
        method="GET",
        path="/experiments/{experimentId}/preview_gc",
        handler=preview_retention,
        query=PreviewGcQuery,
        raw=True,
        summary="Preview what a retention policy would delete",
    ),
)
