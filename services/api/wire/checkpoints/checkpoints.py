"""REST shapes of checkpoints, and of the metrics that belong to them (docs/reference/experiments.md 10)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Double, Int64, Message, Pagination, Timestamp, WireEnum
from services.api.wire.ordering import OrderBy


class CheckpointState(WireEnum):
    UNSPECIFIED = "STATE_UNSPECIFIED", 0
    ACTIVE = "STATE_ACTIVE", 1
    COMPLETED = "STATE_COMPLETED", 2
    ERROR = "STATE_ERROR", 3
    DELETED = "STATE_DELETED", 4
    PARTIALLY_DELETED = "STATE_PARTIALLY_DELETED", 5


class CheckpointSortBy(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    UUID = "SORT_BY_UUID", 1
    TRIAL_ID = "SORT_BY_TRIAL_ID", 2
    BATCH_NUMBER = "SORT_BY_BATCH_NUMBER", 3
    END_TIME = "SORT_BY_END_TIME", 4
    STATE = "SORT_BY_STATE", 5
    SEARCHER_METRIC = "SORT_BY_SEARCHER_METRIC", 6


class Metrics(Message, kw_only=True):
    avg_metrics: dict[str, Any] | None
    batch_metrics: list[dict[str, Any]] = []


class MetricsWorkload(Message, kw_only=True):
    """A report at one step; ``num_inputs`` is always 0, nobody reports it any more."""

    end_time: Timestamp | None
    metrics: Metrics
    num_inputs: int = 0
    total_batches: int


class CheckpointWorkload(Message, kw_only=True):
    """A checkpoint as one of the things a trial has done; ``resources`` maps paths to bytes."""

    uuid: str
    end_time: Timestamp | None
    state: CheckpointState
    resources: dict[str, Int64]
    total_batches: int
    metadata: dict[str, Any] | None


class CheckpointTraining(Message):
    """How a checkpoint came about: null throughout for one that no trial has made.

    ``searcher_metric`` is null when there was no validation at its step.
    """

    trial_id: int | None = None
    experiment_id: int | None = None
    experiment_config: dict[str, Any] | None = None
    hparams: dict[str, Any] | None = None
    training_metrics: Metrics | None = None
    validation_metrics: Metrics | None = None
    searcher_metric: Double | None = None


class Checkpoint(Message, kw_only=True):
    task_id: str
    allocation_id: str | UnsetType = UNSET
    uuid: str
    report_time: Timestamp | None
    resources: dict[str, Int64]
    metadata: dict[str, Any]
    state: CheckpointState
    training: CheckpointTraining
    storage_id: int | UnsetType = UNSET


class GetCheckpointResponse(Message, kw_only=True):
    checkpoint: Checkpoint


class GetCheckpointsQuery(Message):
    """``sort_by_metric``, the name of a validation metric, wins over ``sort_by_attr``."""

    sort_by_attr: CheckpointSortBy = CheckpointSortBy.UNSPECIFIED
    sort_by_metric: str = ""
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    states: list[CheckpointState] = []


class GetCheckpointsResponse(Message, kw_only=True):
    checkpoints: list[Checkpoint]
    pagination: Pagination


class DeleteCheckpointsRequest(Message):
    checkpoint_uuids: list[str] = []


class RemoveFilesRequest(Message):
    """No globs at all delete nothing: they only refresh the lists of files."""

    checkpoint_uuids: list[str] = []
    checkpoint_globs: list[str] = []


class PreviewGcQuery(Message):
    """Spelled in snake_case, as the path is not one of /api/v1."""

    save_experiment_best: int | UnsetType = UNSET
    save_trial_best: int | UnsetType = UNSET
    save_trial_latest: int | UnsetType = UNSET
