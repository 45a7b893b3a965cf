"""REST shapes of actions on experiments, one by one or many at once (docs/reference/experiments.md 6)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from services.api.wire.base import Message
from services.api.wire.experiments.experiments import Experiment, ExperimentState, LaunchWarning


class MoveExperimentRequest(Message):
    destination_project_id: int = 0


class ContinueExperimentRequest(Message):
    """``override_config`` is YAML text, over the configuration that the experiment has."""

    id: int = 0
    override_config: str = ""


class ContinueExperimentResponse(Message, kw_only=True):
    experiment: Experiment
    warnings: list[LaunchWarning] = []


class DeleteExperimentQuery(Message):
    """``force`` leaves files of checkpoints and TensorBoards where they are."""

    force: bool = False


class RetainLogsRequest(Message):
    """-1 keeps logs for ever."""

    num_days: int = 0


class BulkExperimentFilters(Message):
    """Experiments that fulfil all conditions; those left empty do not count."""

    description: str = ""
    name: str = ""
    labels: list[str] = []
    archived: bool | UnsetType = UNSET
    states: list[ExperimentState] = []
    user_ids: list[int] = []
    project_id: int = 0
    excluded_experiment_ids: list[int] = []


class BulkRequest(Message):
    """Ids do not count when there are filters."""

    experiment_ids: list[int] = []
    filters: BulkExperimentFilters | UnsetType = UNSET


class BulkMoveRequest(BulkRequest):
    destination_project_id: int = 0


class BulkRetainLogsRequest(BulkRequest):
    num_days: int = 0


class ActionResult(Message, kw_only=True):
    """``error`` is empty on success."""

    id: int
    error: str = ""


class BulkResponse(Message, kw_only=True):
    results: list[ActionResult]
