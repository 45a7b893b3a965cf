"""REST shapes of system metrics by series (docs/reference/logs.md 11)."""

from __future__ import annotations

from msgspec import field

from services.api.wire.base import Double, Instant, Message, Timestamp, WireEnum


class ProfilerMetricType(WireEnum):
    UNSPECIFIED = "PROFILER_METRIC_TYPE_UNSPECIFIED", 0
    SYSTEM = "PROFILER_METRIC_TYPE_SYSTEM", 1
    TIMING = "PROFILER_METRIC_TYPE_TIMING", 2
    MISC = "PROFILER_METRIC_TYPE_MISC", 3


class ProfilerLabels(Message):
    """What tells one series from another; ``gpu_uuid`` is the mount path for the use of a disk."""

    trial_id: int = 0
    name: str = ""
    agent_id: str = ""
    gpu_uuid: str = ""
    metric_type: ProfilerMetricType = ProfilerMetricType.UNSPECIFIED


class PostedProfilerBatch(Message):
    """One series; the three lists are equally long."""

    values: list[float] = []
    batches: list[int] = []
    timestamps: list[Instant] = []
    labels: ProfilerLabels = field(default_factory=ProfilerLabels)


class PostProfilerMetricsRequest(Message):
    batches: list[PostedProfilerBatch] = []


class ProfilerMetricsQuery(Message):
    """Fields of ``labels`` that are empty fit every series."""

    labels: ProfilerLabels = field(default_factory=ProfilerLabels)
    follow: bool = False


class ProfilerBatch(Message, kw_only=True):
    """Readings of one series in the order in which they came; system metrics belong to no number of batches."""

    values: list[Double]
    batches: list[int]
    timestamps: list[Timestamp | None]
    labels: ProfilerLabels


class ProfilerMetricsResponse(Message, kw_only=True):
    batch: ProfilerBatch


class AvailableSeriesQuery(Message):
    follow: bool = False


class AvailableSeriesResponse(Message):
    labels: list[ProfilerLabels] = []
