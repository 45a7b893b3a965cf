"""Checkpoints as training code and checkpoint GC report them (docs/reference/experiments.md 10.1, 10.2)."""

from __future__ import annotations

from typing import Final

from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest
from libs.ids import require_uuid
from services.api.actions.checkpoints import reports as actions
from services.api.actions.checkpoints.reports import ReportedCheckpoint
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.checkpoints.checkpoints import load_checkpoint
from services.api.wire.base import Empty
from services.api.wire.checkpoints.checkpoints import CheckpointState
from services.api.wire.checkpoints.reports import (
    CheckpointMetadataRequest,
    CheckpointMetadataResponse,
    PatchCheckpointsRequest,
    ReportCheckpointRequest,
)

_REPORTABLE: Final = (CheckpointState.COMPLETED, CheckpointState.UNSPECIFIED)
_WHAT: Final = "checkpoint uuid"


async def post_checkpoint(call: Call[App, None, ReportCheckpointRequest]) -> None:
    body = call.body
    if body.state not in _REPORTABLE:
        raise InvalidRequest(f"invalid state for reported checkpoint: {body.state.value}")
    reported = ReportedCheckpoint(
        uuid=require_uuid(body.uuid, _WHAT),
        task_id=body.task_id,
        allocation_id=body.allocation_id or None,
        report_time=body.report_time or call.app.clock.now(),
        resources=_sizes(body.resources),
        metadata=body.metadata or {},
        storage_id=body.storage_id or None,
    )
    await in_transaction(call.app.db, lambda tx: actions.report_checkpoint(tx, reported))


async def patch_checkpoints(call: Call[App, None, PatchCheckpointsRequest]) -> None:
    files = {
        require_uuid(one.uuid, _WHAT): None if one.resources is None else _sizes(one.resources.resources)
        for one in call.body.checkpoints
    }
    if files:
        await in_transaction(call.app.db, lambda tx: actions.refresh_files(tx, files))


async def post_checkpoint_metadata(call: Call[App, None, CheckpointMetadataRequest]) -> CheckpointMetadataResponse:
    uuid = require_uuid(call.path_str("checkpointUuid"), _WHAT)
    if call.body.checkpoint is None:  # would take all metadata away without having asked for it
        raise InvalidRequest("checkpoint must be given")
    metadata = call.body.checkpoint.metadata or {}
    await in_transaction(call.app.db, lambda tx: actions.replace_checkpoint_metadata(tx, uuid, metadata))
    async with call.app.db.read() as connection:
        return CheckpointMetadataResponse(
            checkpoint=await load_checkpoint(connection, uuid, reader_id=call.principal.user_id)
        )


def _sizes(resources: dict[str, str]) -> dict[str, int]:
    sizes = {path: int(size) for path, size in resources.items()}
    if any(size < 0 for size in sizes.values()):
        raise InvalidRequest("the size of a file cannot be negative")
    return sizes


_ALL: Final = "/api/v1/checkpoints"

ROUTES: Final = (
    Route(
        method="POST",
        path=_ALL,
        handler=post_checkpoint,
        body=ReportCheckpointRequest,
        response=Empty,
        idempotent=True,
        summary="Report a checkpoint",
    ),
    Route(
        method="PATCH",
        path=_ALL,
        handler=patch_checkpoints,
        body=PatchCheckpointsRequest,
        response=Empty,
        summary="Replace the lists of files of checkpoints",
    ),
    Route(
        method="POST",
        path=f"{_ALL}/{{checkpointUuid}}/metadata",
        handler=post_checkpoint_metadata,
        body=CheckpointMetadataRequest,
        response=CheckpointMetadataResponse,
        summary="Replace the metadata of a checkpoint",
    ),
)
