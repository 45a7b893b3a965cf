"""REST shapes of trials (docs/reference/experiments.md 13.4)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Double, Int64, Message, Pagination, Timestamp, WireEnum
from services.api.wire.checkpoints.checkpoints import CheckpointWorkload, MetricsWorkload
from services.api.wire.experiments.experiments import ExperimentState
from services.api.wire.ordering import OrderBy


class TrialState(WireEnum):
    UNSPECIFIED = "STATE_UNSPECIFIED", 0
    ACTIVE = "STATE_ACTIVE", 1
    PAUSED = "STATE_PAUSED", 2
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED", 3
    STOPPING_KILLED = "STATE_STOPPING_KILLED", 4
    STOPPING_COMPLETED = "STATE_STOPPING_COMPLETED", 5
    STOPPING_ERROR = "STATE_STOPPING_ERROR", 6
    CANCELED = "STATE_CANCELED", 7
    COMPLETED = "STATE_COMPLETED", 8
    ERROR = "STATE_ERROR", 9
    QUEUED = "STATE_QUEUED", 10
    PULLING = "STATE_PULLING", 11
    STARTING = "STATE_STARTING", 12
    RUNNING = "STATE_RUNNING", 13


class TrialSortBy(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    ID = "SORT_BY_ID", 1
    START_TIME = "SORT_BY_START_TIME", 4
    END_TIME = "SORT_BY_END_TIME", 5
    STATE = "SORT_BY_STATE", 6
    BEST_VALIDATION_METRIC = "SORT_BY_BEST_VALIDATION_METRIC", 7
    LATEST_VALIDATION_METRIC = "SORT_BY_LATEST_VALIDATION_METRIC", 8
    BATCHES_PROCESSED = "SORT_BY_BATCHES_PROCESSED", 9
    DURATION = "SORT_BY_DURATION", 10
    RESTARTS = "SORT_BY_RESTARTS", 11
    CHECKPOINT_SIZE = "SORT_BY_CHECKPOINT_SIZE", 12
    LOG_RETENTION_DAYS = "SORT_BY_LOG_RETENTION_DAYS", 13


class Trial(Message, kw_only=True):
    """``state`` as displayed; ``restarts`` no more than the experiment allows.

    task_id, task_ids      the first task, and all in order (a continued trial has several)
    wall_clock_time        seconds, over all allocations
    total_checkpoint_size  bytes
    """

    id: int
    experiment_id: int
    start_time: Timestamp | None
    end_time: Timestamp | None = None
    state: TrialState
    restarts: int
    hparams: dict[str, Any]
    total_batches_processed: int
    best_validation: MetricsWorkload | None = None
    latest_validation: MetricsWorkload | None = None
    best_checkpoint: CheckpointWorkload | None = None
    runner_state: str = ""
    wall_clock_time: float = 0.0
    warm_start_checkpoint_uuid: str = ""
    task_id: str = ""
    total_checkpoint_size: Int64 = "0"
    checkpoint_count: int = 0
    summary_metrics: dict[str, Any] | None = None
    task_ids: list[str] = []
    searcher_metric_value: Double | UnsetType = UNSET
    log_retention_days: int | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    log_policy_matched: str | UnsetType = UNSET


class GetExperimentTrialsQuery(Message):
    sort_by: TrialSortBy = TrialSortBy.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    states: list[ExperimentState] = []


class GetExperimentTrialsResponse(Message, kw_only=True):
    trials: list[Trial]
    pagination: Pagination


class GetTrialResponse(Message, kw_only=True):
    trial: Trial
