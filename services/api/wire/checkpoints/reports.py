"""REST shapes in which checkpoints are reported (docs/reference/experiments.md 10.1, 10.2)."""

from __future__ import annotations

from typing import Any

from services.api.wire.base import Instant, Int64, Message
from services.api.wire.checkpoints.checkpoints import Checkpoint, CheckpointState


class ReportCheckpointRequest(Message):
    """``resources`` maps relative paths to bytes; directories end in ``/`` and have none."""

    uuid: str = ""
    task_id: str = ""
    allocation_id: str | None = None
    report_time: Instant | None = None
    resources: dict[str, Int64] = {}
    metadata: dict[str, Any] | None = None
    state: CheckpointState = CheckpointState.UNSPECIFIED
    storage_id: int | None = None


class PatchedResources(Message):
    resources: dict[str, Int64] = {}


class PatchedCheckpoint(Message):
    """What is left of a checkpoint; without ``resources`` nothing is said about it."""

    uuid: str = ""
    resources: PatchedResources | None = None


class PatchCheckpointsRequest(Message):
    checkpoints: list[PatchedCheckpoint] = []


class NewMetadata(Message):
    uuid: str = ""
    metadata: dict[str, Any] | None = None


class CheckpointMetadataRequest(Message):
    checkpoint: NewMetadata | None = None


class CheckpointMetadataResponse(Message, kw_only=True):
    checkpoint: Checkpoint
