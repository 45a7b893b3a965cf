"""REST shapes of series side by side: ``GET /api/v1/trials/time-series`` (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Double, Instant, Int64, Message, Timestamp
from services.api.wire.experiments.experiments import Int32Filter
from services.api.wire.trials.metrics import MetricType
from services.api.wire.trials.trials import TrialState


class DoubleRange(Message):
    lt: float | UnsetType = UNSET
    lte: float | UnsetType = UNSET
    gt: float | UnsetType = UNSET
    gte: float | UnsetType = UNSET


class TimeRange(Message):
    lt: Instant | UnsetType = UNSET
    lte: Instant | UnsetType = UNSET
    gt: Instant | UnsetType = UNSET
    gte: Instant | UnsetType = UNSET


class TimeSeriesFilter(Message):
    """``name`` is ``batches``, ``epoch`` or ``time``."""

    name: str = ""
    double_range: DoubleRange = field(default_factory=DoubleRange)
    integer_range: Int32Filter = field(default_factory=Int32Filter)
    time_range: TimeRange = field(default_factory=TimeRange)


class CompareTrialsQuery(Message):
    """Metrics by ``metric_ids``, each ``group.name``, or by ``metric_names`` of one group or of the usual two."""

    trial_ids: list[int] = []
    max_datapoints: int = 0
    metric_names: list[str] = []
    metric_ids: list[str] = []
    start_batches: int = 0
    end_batches: int = 0
    metric_type: MetricType = MetricType.UNSPECIFIED
    group: str = ""
    time_series_filter: TimeSeriesFilter = field(default_factory=TimeSeriesFilter)


class DataPoint(Message, kw_only=True):
    """``values`` by the name of the metric."""

    batches: int
    values: dict[str, Any]
    time: Timestamp | None
    epoch: Double | UnsetType = UNSET


class DownsampledMetrics(Message, kw_only=True):
    data: list[DataPoint]
    type: MetricType
    group: str


class ComparedTrial(Message, kw_only=True):
    """A trial beside its series: a ``Trial`` without what may hold a value for each metric that it has ever reported,
    and without its best checkpoint.
    """

    id: int
    experiment_id: int
    start_time: Timestamp | None
    end_time: Timestamp | None = None
    state: TrialState
    restarts: int
    hparams: dict[str, Any]
    total_batches_processed: int
    runner_state: str = ""
    wall_clock_time: float = 0.0
    warm_start_checkpoint_uuid: str = ""
    task_id: str = ""
    total_checkpoint_size: Int64 = "0"
    checkpoint_count: int = 0
    task_ids: list[str] = []
    searcher_metric_value: Double | UnsetType = UNSET
    log_retention_days: int | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    log_policy_matched: str | UnsetType = UNSET


class ComparableTrial(Message, kw_only=True):
    trial: ComparedTrial
    metrics: list[DownsampledMetrics]


class CompareTrialsResponse(Message):
    trials: list[ComparableTrial] = []
