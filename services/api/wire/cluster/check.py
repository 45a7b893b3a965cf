"""What would become of an experiment, or of another task, if it was submitted now. Endpoints of our own."""

from __future__ import annotations

from services.api.wire.base import Message, Timestamp, WireEnum
from services.api.wire.experiments.experiments import LaunchWarning


class CheckedStart(Message, kw_only=True):
    """When a request of so many slots in a pool would start."""

    resource_pool: str
    slots: int
    pods: int
    """At least, where the pool has pods of different sizes."""
    slots_per_pod: int
    """At most, where the pool has pods of different sizes."""
    starts_now: bool
    possible: bool
    """False when it would not even start if nothing else ran."""
    nodes: list[str] = []
    """Of its pods, where it starts now."""
    reason_code: str = ""
    reason: str = ""
    """Why it would wait, for programs and for people."""
    ahead: int | None = None
    """Other jobs that would be before it."""
    slots_ahead: int | None = None
    estimated_start: Timestamp | None = None
    """If nobody else comes; null where it starts now, or nobody can say."""
    basis: str = ""


class CheckedPool(Message, kw_only=True):
    """A pool in which it could not run if nothing else did."""

    resource_pool: str
    reason: str


class CheckAlternative(Message, kw_only=True):
    change: str
    """Of the configuration, as in ``resources.slots_per_trial: 4``."""
    start: CheckedStart


class CheckedTaskType(WireEnum):
    """Tasks other than trials that a configuration alone describes; the names are those of task types."""

    UNSPECIFIED = "TASK_TYPE_UNSPECIFIED", 0
    NOTEBOOK = "TASK_TYPE_NOTEBOOK", 2
    SHELL = "TASK_TYPE_SHELL", 3
    COMMAND = "TASK_TYPE_COMMAND", 4
    GENERIC = "TASK_TYPE_GENERIC", 7


class CheckTaskRequest(Message):
    """``config`` is YAML text. A generic task belongs to a project and has no template; others are in a workspace."""

    type: CheckedTaskType = CheckedTaskType.UNSPECIFIED
    config: str = ""
    template: str = ""
    workspace_id: int = 0
    project_id: int = 0


class CheckResponse(Message, kw_only=True):
    start: CheckedStart
    """Of the first trial, or of the task."""
    trials: int
    """That a search begins with, each of which is a request of its own; 0 of other tasks."""
    username: str
    workspace_id: int
    project_id: int
    """Who and what it is charged to: limits, quotas and shares are those of this user and this workspace. The project
    is 0 of tasks that are in none."""
    priority: int
    weight: float
    max_slots: int | None = None
    warnings: list[LaunchWarning] = []
    unfit_pools: list[CheckedPool] = []
    """Of its own pool and its fallback pools, those that cannot run it as their nodes are now."""
    sooner: list[CheckAlternative] = []
    """Changes by which it would start sooner, the soonest first."""
