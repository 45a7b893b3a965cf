"""REST shapes of searches for experiments and runs (docs/reference/platform.md 9)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from services.api.wire.base import Message, Pagination
from services.api.wire.experiments.experiments import Experiment
from services.api.wire.trials.trials import Trial


class SearchRequest(Message):
    """``filter`` is JSON text; ``project_id`` 0 is every project."""

    project_id: int = 0
    offset: int = 0
    limit: int = 0
    sort: str = ""
    filter: str = ""


class FoundTrial(Trial, kw_only=True):
    """``summary_metrics_left_out``: how many metrics ``summary_metrics`` does not show; missing if it shows all."""

    summary_metrics_left_out: int | UnsetType = UNSET


class FoundExperiment(Message, kw_only=True):
    experiment: Experiment
    best_trial: FoundTrial | None = None


class SearchExperimentsResponse(Message, kw_only=True):
    experiments: list[FoundExperiment]
    pagination: Pagination
