"""REST shapes of experiments: the object itself, creating, listing and editing (docs/reference/experiments.md 13)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, field

from services.api.wire.base import Double, Int64, Message, Pagination, Timestamp, WireEnum
from services.api.wire.experiments.model_definitions import File
from services.api.wire.ordering import OrderBy

INT32_MAX = 2**31 - 1


class ExperimentState(WireEnum):
    UNSPECIFIED = "STATE_UNSPECIFIED", 0
    ACTIVE = "STATE_ACTIVE", 1
    PAUSED = "STATE_PAUSED", 2
    STOPPING_COMPLETED = "STATE_STOPPING_COMPLETED", 3
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED", 4
    STOPPING_ERROR = "STATE_STOPPING_ERROR", 5
    COMPLETED = "STATE_COMPLETED", 6
    CANCELED = "STATE_CANCELED", 7
    ERROR = "STATE_ERROR", 8
    DELETED = "STATE_DELETED", 9
    DELETING = "STATE_DELETING", 10
    DELETE_FAILED = "STATE_DELETE_FAILED", 11
    STOPPING_KILLED = "STATE_STOPPING_KILLED", 12
    QUEUED = "STATE_QUEUED", 13
    PULLING = "STATE_PULLING", 14
    STARTING = "STATE_STARTING", 15
    RUNNING = "STATE_RUNNING", 16


class JobState(WireEnum):
    UNSPECIFIED = "STATE_UNSPECIFIED", 0
    QUEUED = "STATE_QUEUED", 1
    SCHEDULED = "STATE_SCHEDULED", 2
    SCHEDULED_BACKFILLED = "STATE_SCHEDULED_BACKFILLED", 3


class LaunchWarning(WireEnum):
    UNSPECIFIED = "LAUNCH_WARNING_UNSPECIFIED", 0
    CURRENT_SLOTS_EXCEEDED = "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED", 1


class ExperimentSortBy(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    ID = "SORT_BY_ID", 1
    DESCRIPTION = "SORT_BY_DESCRIPTION", 2
    START_TIME = "SORT_BY_START_TIME", 4
    END_TIME = "SORT_BY_END_TIME", 5
    STATE = "SORT_BY_STATE", 6
    NUM_TRIALS = "SORT_BY_NUM_TRIALS", 8
    PROGRESS = "SORT_BY_PROGRESS", 9
    USER = "SORT_BY_USER", 10
    NAME = "SORT_BY_NAME", 11
    FORKED_FROM = "SORT_BY_FORKED_FROM", 12
    RESOURCE_POOL = "SORT_BY_RESOURCE_POOL", 13
    PROJECT_ID = "SORT_BY_PROJECT_ID", 14
    CHECKPOINT_SIZE = "SORT_BY_CHECKPOINT_SIZE", 15
    CHECKPOINT_COUNT = "SORT_BY_CHECKPOINT_COUNT", 16
    SEARCHER_METRIC_VAL = "SORT_BY_SEARCHER_METRIC_VAL", 17


class Experiment(Message):
    """``state`` as displayed: ACTIVE is refined to what its allocations do.

    duration         seconds from start to end, or until now
    display_name     of the owner; the username where there is none
    hyperparameters  the search space, as in ``config``
    """

    id: int = 0
    name: str = ""
    description: str = ""
    labels: list[str] = []
    state: ExperimentState = ExperimentState.UNSPECIFIED
    start_time: Timestamp | None = None
    end_time: Timestamp | None = None
    duration: int | UnsetType = UNSET
    archived: bool = False
    num_trials: int = 0
    trial_ids: list[int] = []
    user_id: int = 0
    username: str = ""
    display_name: str = ""
    resource_pool: str = ""
    searcher_type: str = ""
    searcher_metric: str | UnsetType = UNSET
    hyperparameters: dict[str, Any] | UnsetType = UNSET
    notes: str = ""
    job_id: str = ""
    forked_from: int | None = None
    progress: Double | None = None
    project_id: int = 0
    project_name: str = ""
    project_owner_id: int = 0
    workspace_id: int = 0
    workspace_name: str = ""
    parent_archived: bool = False
    config: dict[str, Any] | None = None
    original_config: str = ""
    checkpoint_size: Int64 = "0"
    checkpoint_count: int = 0
    best_trial_id: int | UnsetType = UNSET
    best_trial_searcher_metric: Double | UnsetType = UNSET
    external_experiment_id: str | UnsetType = UNSET
    external_trial_id: str | UnsetType = UNSET
    unmanaged: bool | UnsetType = UNSET
    model_definition_size: int | UnsetType = UNSET


class JobSummary(Message, kw_only=True):
    """``jobs_ahead`` is -1 where the queue is no line."""

    state: JobState
    jobs_ahead: int


class CreateExperimentRequest(Message):
    """``config`` is YAML text."""

    model_definition: list[File] = []
    config: str = ""
    validate_only: bool = False
    parent_id: int = 0
    activate: bool = False
    project_id: int = 0
    template: str = ""
    unmanaged: bool = False


class CreateExperimentResponse(Message, kw_only=True):
    experiment: Experiment
    config: dict[str, Any] | None
    warnings: list[LaunchWarning] = []


class GetExperimentResponse(Message, kw_only=True):
    experiment: Experiment
    config: dict[str, Any]
    job_summary: JobSummary | None = None


class Int32Filter(Message):
    """A number that fulfils all conditions given; ``incl`` and ``not_in`` count when they are not empty."""

    lt: int | UnsetType = UNSET
    lte: int | UnsetType = UNSET
    gt: int | UnsetType = UNSET
    gte: int | UnsetType = UNSET
    incl: list[int] = []
    not_in: list[int] = []


class GetExperimentsQuery(Message):
    sort_by: ExperimentSortBy = ExperimentSortBy.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    description: str = ""
    name: str = ""
    labels: list[str] = []
    archived: bool | UnsetType = UNSET
    states: list[ExperimentState] = []
    users: list[str] = []
    user_ids: list[int] = []
    project_id: int = 0
    experiment_id_filter: Int32Filter = field(default_factory=Int32Filter)
    show_trial_data: bool = False


class GetExperimentsResponse(Message, kw_only=True):
    experiments: list[Experiment]
    pagination: Pagination


class PatchResources(Message):
    """``max_slots`` null removes the limit; the others cannot be removed."""

    max_slots: Annotated[int, Meta(ge=0, le=INT32_MAX)] | UnsetType | None = UNSET
    weight: float | UnsetType = UNSET
    priority: int | UnsetType = UNSET


class PatchCheckpointStorage(Message):
    save_experiment_best: Annotated[int, Meta(ge=0, le=INT32_MAX)] | UnsetType = UNSET
    save_trial_best: Annotated[int, Meta(ge=0, le=INT32_MAX)] | UnsetType = UNSET
    save_trial_latest: Annotated[int, Meta(ge=0, le=INT32_MAX)] | UnsetType = UNSET


class PatchExperiment(Message):
    """Fields that are absent or null stay as they are."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    notes: str | UnsetType = UNSET
    labels: list[str] | UnsetType = UNSET
    resources: PatchResources | UnsetType = UNSET
    checkpoint_storage: PatchCheckpointStorage | UnsetType = UNSET


class PatchExperimentResponse(Message, kw_only=True):
    experiment: Experiment


class ValidationHistoryEntry(Message, kw_only=True):
    trial_id: int
    end_time: Timestamp | None
    searcher_metric: Double


class ValidationHistoryResponse(Message, kw_only=True):
    validation_history: list[ValidationHistoryEntry]


class LabelsQuery(Message):
    """``project_id`` 0 is every project."""

    project_id: int = 0


class LabelsResponse(Message, kw_only=True):
    labels: list[str]
