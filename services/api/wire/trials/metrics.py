"""REST shapes of metrics: reports going in, reports and workloads coming out (docs/reference/experiments.md 9)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Double, Instant, Int32, Message, Pagination, Timestamp, WireEnum
from services.api.wire.checkpoints.checkpoints import CheckpointWorkload, MetricsWorkload
from services.api.wire.ordering import OrderBy


class ReportedMetrics(Message):
    avg_metrics: dict[str, Any] | None = None
    batch_metrics: list[dict[str, Any]] | None = None


class TrialMetrics(Message):
    """``trial_run_id`` must be the present run of the trial; profiling has no ``steps_completed``."""

    trial_run_id: Int32 = 0
    steps_completed: Int32 | None = None
    report_time: Instant | None = None
    metrics: ReportedMetrics | None = None


class ReportMetricsRequest(Message):
    group: str = ""
    metrics: TrialMetrics | None = None


class GetMetricsQuery(Message):
    """``group`` '' is every group; ``size`` is how many reports share a line of the stream."""

    trial_ids: list[int] = []
    size: int = 0
    group: str = ""


class MetricsReport(Message, kw_only=True):
    """``metrics`` holds ``avg_metrics`` and ``batch_metrics``, or ``validation_metrics``."""

    trial_id: int
    end_time: Timestamp | None
    metrics: dict[str, Any]
    total_batches: int
    archived: bool = False
    id: int
    trial_run_id: int
    group: str


class GetMetricsResponse(Message, kw_only=True):
    metrics: list[MetricsReport]


class MetricType(WireEnum):
    UNSPECIFIED = "METRIC_TYPE_UNSPECIFIED", 0
    TRAINING = "METRIC_TYPE_TRAINING", 1
    VALIDATION = "METRIC_TYPE_VALIDATION", 2
    PROFILING = "METRIC_TYPE_PROFILING", 3


class WorkloadFilter(WireEnum):
    UNSPECIFIED = "FILTER_OPTION_UNSPECIFIED", 0
    CHECKPOINT = "FILTER_OPTION_CHECKPOINT", 1
    VALIDATION = "FILTER_OPTION_VALIDATION", 2
    CHECKPOINT_OR_VALIDATION = "FILTER_OPTION_CHECKPOINT_OR_VALIDATION", 3


class GetWorkloadsQuery(Message):
    """``sort_key`` is ``batches``, or a metric of the group that ``group`` or ``metric_type`` names."""

    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    sort_key: str = ""
    filter: WorkloadFilter = WorkloadFilter.UNSPECIFIED
    include_batch_metrics: bool = False
    metric_type: MetricType = MetricType.UNSPECIFIED
    group: str = ""
    remove_deleted_checkpoints: bool = False


class Workload(Message):
    """Exactly one of the three."""

    training: MetricsWorkload | UnsetType = UNSET
    validation: MetricsWorkload | UnsetType = UNSET
    checkpoint: CheckpointWorkload | UnsetType = UNSET


class GetWorkloadsResponse(Message, kw_only=True):
    workloads: list[Workload]
    pagination: Pagination


class BestSearcherMetricResponse(Message, kw_only=True):
    metric: Double
