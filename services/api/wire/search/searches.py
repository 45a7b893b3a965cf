"""REST shapes of searches for experiments and runs (docs/reference/platform.md 9)."""

from __future__ import annotations

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


class FoundExperiment(Message, kw_only=True):
    experiment: Experiment
    best_trial: Trial | None = None


class SearchExperimentsResponse(Message, kw_only=True):
    experiments: list[FoundExperiment]
    pagination: Pagination
