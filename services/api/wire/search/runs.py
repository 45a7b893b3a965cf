"""REST shapes of runs as rows of a table (docs/reference/platform.md 9)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Double, Int64, Message, Pagination, Timestamp
from services.api.wire.trials.trials import TrialState


class FlatRunExperiment(Message, kw_only=True):
    """``progress`` is a fraction of 0 to 1."""

    id: int
    name: str
    description: str
    searcher_type: str
    searcher_metric: str
    resource_pool: str
    progress: Double
    is_multitrial: bool
    unmanaged: bool
    forked_from: int | None = None
    external_experiment_id: str | UnsetType = UNSET


class FlatRun(Message, kw_only=True):
    """``state`` as stored, by which clients filter; ``duration`` in seconds, ``checkpoint_size`` in bytes.

    local_id                  KEY-n, by which people call it
    parent_archived           whether its experiment is
    summary_metrics_left_out  how many metrics of the run ``summary_metrics`` does not show; missing if it shows all
    """

    id: int
    local_id: str
    start_time: Timestamp | None
    end_time: Timestamp | None
    state: TrialState
    labels: list[str]
    checkpoint_size: Int64
    checkpoint_count: int
    searcher_metric_value: Double | UnsetType = UNSET
    external_run_id: str | UnsetType = UNSET
    hyperparameters: dict[str, Any] | None
    summary_metrics: dict[str, Any] | None
    summary_metrics_left_out: int | UnsetType = UNSET
    user_id: int
    duration: int
    project_id: int
    project_name: str
    workspace_id: int
    workspace_name: str
    parent_archived: bool
    experiment: FlatRunExperiment
    metadata: dict[str, Any] | UnsetType = UNSET
    archived: bool
    log_policy_matched: str | UnsetType = UNSET


class SearchRunsResponse(Message, kw_only=True):
    runs: list[FlatRun]
    pagination: Pagination
