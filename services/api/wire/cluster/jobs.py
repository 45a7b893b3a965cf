"""REST shapes of the job queue (docs/reference/scheduling.md 6.3)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Double, Message, Pagination, Timestamp, WireEnum
from services.api.wire.cluster.pools import QueueStats
from services.api.wire.experiments.experiments import JobState, JobSummary
from services.api.wire.ordering import OrderBy


class JobType(WireEnum):
    UNSPECIFIED = "TYPE_UNSPECIFIED", 0
    EXPERIMENT = "TYPE_EXPERIMENT", 1
    NOTEBOOK = "TYPE_NOTEBOOK", 2
    TENSORBOARD = "TYPE_TENSORBOARD", 3
    SHELL = "TYPE_SHELL", 4
    COMMAND = "TYPE_COMMAND", 5
    CHECKPOINT_GC = "TYPE_CHECKPOINT_GC", 6
    EXTERNAL = "TYPE_EXTERNAL", 7
    GENERIC = "TYPE_GENERIC", 8


class Job(Message, kw_only=True):
    """``entity_id`` is the id of the experiment or of the task."""

    summary: JobSummary
    type: JobType
    submission_time: Timestamp | None
    username: str
    user_id: int
    resource_pool: str
    is_preemptible: bool
    priority: int
    weight: Double
    entity_id: str
    job_id: str
    requested_slots: int
    allocated_slots: int
    name: str
    progress: Double = 0.0
    workspace_id: int


class LimitedJob(Message, kw_only=True):
    """What everybody may know of a job: that it is in the queue, and what it takes there."""

    summary: JobSummary | None
    type: JobType
    resource_pool: str
    is_preemptible: bool
    priority: int
    weight: Double
    job_id: str
    requested_slots: int
    allocated_slots: int
    progress: Double = 0.0
    workspace_id: int


class VisibleJob(Message, kw_only=True):
    """A job, whole or as much of it as the caller may see."""

    full: Job | UnsetType = UNSET
    limited: LimitedJob | UnsetType = UNSET


class GetJobsQuery(Message):
    offset: int = 0
    limit: int = 0
    order_by: OrderBy = OrderBy.UNSPECIFIED
    resource_pool: str = ""
    states: list[JobState] = []


class GetJobsV2Response(Message):
    pagination: Pagination = field(default_factory=Pagination)
    jobs: list[VisibleJob] = []


class GetJobsResponse(Message):
    pagination: Pagination = field(default_factory=Pagination)
    jobs: list[Job] = []


class GetStatsQuery(Message):
    resource_pools: list[str] = []


class DayInQueue(Message, kw_only=True):
    """``period_start`` is a day, YYYY-MM-DD; ``seconds`` the average time in the queue of what left it that day."""

    period_start: str
    seconds: float


class PoolQueue(Message, kw_only=True):
    stats: QueueStats
    resource_pool: str
    aggregates: list[DayInQueue] = []


class GetStatsResponse(Message):
    results: list[PoolQueue] = []


class QueueControl(Message):
    """Exactly one of the fields besides ``job_id`` is given; a null counts as not given."""

    job_id: str = ""
    ahead_of: str | UnsetType = UNSET
    behind_of: str | UnsetType = UNSET
    resource_pool: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    weight: float | UnsetType = UNSET


class UpdateQueueRequest(Message):
    updates: list[QueueControl] = []
