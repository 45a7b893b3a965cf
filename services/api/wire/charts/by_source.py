"""REST shapes of metrics by the checkpoint, or the version of a model, that trials work with."""

from __future__ import annotations

from services.api.wire.base import Message
from services.api.wire.trials.metrics import MetricsReport
from services.api.wire.trials.runs import TrialSourceInfoType


class MetricsBySourceQuery(Message):
    """``metric_group`` '' is every group, an unspecified type every type."""

    metric_group: str = ""
    trial_source_info_type: TrialSourceInfoType = TrialSourceInfoType.UNSPECIFIED


class MetricsBySourceResponse(Message, kw_only=True):
    metrics: list[MetricsReport]
