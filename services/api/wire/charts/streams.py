"""REST shapes of the streams that charts of an experiment are drawn from (docs/reference/experiments.md 9.6)."""

from __future__ import annotations

from typing import Any

from services.api.wire.base import Double, Message
from services.api.wire.charts.series import DataPoint
from services.api.wire.trials.metrics import MetricType


class MetricNamesQuery(Message):
    ids: list[int] = []
    period_seconds: int = 0


class MetricIdentifier(Message, kw_only=True):
    group: str
    name: str


class MetricNamesResponse(Message):
    """Names that no message before had."""

    searcher_metrics: list[str] = []
    training_metrics: list[str] = []
    validation_metrics: list[str] = []
    metric_names: list[MetricIdentifier] = []


class ChartQuery(Message):
    """``period_seconds`` 0 is 30."""

    metric_name: str = ""
    metric_type: MetricType = MetricType.UNSPECIFIED
    group: str = ""
    period_seconds: int = 0


class MetricBatchesResponse(Message):
    """Numbers of batches that no message before had."""

    batches: list[int] = []


class TrialsSnapshotQuery(ChartQuery):
    batches_processed: int = 0
    batches_margin: int = 0


class SnapshotTrial(Message, kw_only=True):
    trial_id: int
    hparams: dict[str, Any]
    metric: Double
    batches_processed: int


class TrialsSnapshotResponse(Message):
    """Trials that were not in a message before, or have another metric now."""

    trials: list[SnapshotTrial] = []


class TrialsSampleQuery(ChartQuery):
    """Both ends of the range of batches belong to it; ``end_batches`` 0 has no end."""

    max_trials: int = 0
    max_datapoints: int = 0
    start_batches: int = 0
    end_batches: int = 0


class SampleTrial(Message, kw_only=True):
    trial_id: int
    hparams: dict[str, Any]
    data: list[DataPoint]


class TrialsSampleResponse(Message):
    """Who joined the best trials, who left them, and the new points of those that are among them."""

    trials: list[SampleTrial] = []
    promoted_trials: list[int] = []
    demoted_trials: list[int] = []
