"""Public events: something about an object changed. Values are the state after the change.

They are notifications, reasons to look again, for our services as for outside subscribers: each may come twice, late
or never.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct


class ExperimentChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="experiment.changed"):
    """Subject ``resolute.v1.experiment.<id>.<what>``."""

    experiment_id: int
    what: Literal["created", "state", "edited", "moved", "searcher", "progress", "deleted"]
    state: str = ""
    name: str = ""
    job_id: str = ""
    owner: str = ""
    project_id: int | None = None
    progress: float | None = None


class TrialChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="trial.changed"):
    """Subject ``resolute.v1.trial.<id>.<what>``. Without ``hparams`` and ``metrics`` where those are very large."""

    trial_id: int
    experiment_id: int
    what: Literal["created", "state", "metrics", "restarted", "deleted"]
    state: str = ""
    task_id: str = ""
    restarts: int = 0
    hparams: dict[str, Any] | None = None
    group: str = ""
    """Of a metrics event: the metric group; ``validation`` reports carry their values in ``metrics``."""
    steps_completed: int | None = None
    metrics: dict[str, Any] | None = None


class AllocationChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="allocation.changed"):
    """Subject ``resolute.v1.allocation.<id>.<what>``. ``signal`` asks whoever waits on it to look at its row.

    ``preemption_requested`` and ``kill_requested`` ask the scheduler to: somebody else wants the allocation to leave,
    or its user to end it. ``waits`` says why it has no slots yet, when that has changed, once a minute at most.
    """

    allocation_id: str
    task_id: str
    what: Literal[
        "requested",
        "state",
        "ready",
        "preemption_requested",
        "kill_requested",
        "signal",
        "gathered",
        "proxy",
        "waits",
        "ended",
    ]
    state: str = ""
    pool: str = ""
    exit_reason: str = ""
    exit_code: int | None = None
    reason_code: str = ""
    """Of ``waits``: why, for programs, as in labels of ``resolute_scheduler_queued``."""
    reason: str = ""
    """The same for people."""


class TaskChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="task.changed"):
    """Subject ``resolute.v1.task.<id>.<what>``. Generic tasks have a state; they end again after each pause."""

    task_id: str
    task_type: str
    what: Literal["created", "state", "ended"]
    state: str = ""


class JobChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="job.changed"):
    """Subject ``resolute.v1.job.<id>.<what>``."""

    job_id: str
    what: Literal["submitted", "changed", "ended"]
    pool: str = ""
    priority: int | None = None
    weight: float | None = None


class CheckpointChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="checkpoint.changed"):
    """Subject ``resolute.v1.checkpoint.<uuid>.<what>``."""

    uuid: str
    what: Literal["reported", "changed", "deleted"]
    state: str = ""
    trial_id: int | None = None
    steps_completed: int | None = None


class WorkspaceChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="workspace.changed"):
    """Subject ``resolute.v1.workspace.<id>.<what>``; changes of its projects too, with ``project_id`` set."""

    workspace_id: int
    what: Literal["created", "changed", "deleted", "project"]
    project_id: int | None = None
    name: str = ""


class UserChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="user.changed"):
    """Subject ``resolute.v1.user.<id>.<what>``. ``sessions`` asks every api to forget what it cached of the user."""

    user_id: int
    what: Literal["created", "changed", "sessions"]
    username: str = ""


class GroupChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="group.changed"):
    """Subject ``resolute.v1.group.<id>.<what>``. The group that stands for one user has ``user_id`` set.

    ``members`` came or went; ``roles`` were given to it or taken away.
    """

    group_id: int
    what: Literal["created", "changed", "members", "roles", "deleted"]
    name: str = ""
    user_id: int | None = None


class ModelChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="model.changed"):
    """Subject ``resolute.v1.model.<id>.<what>``; changes of its versions too, with ``version`` set to their number."""

    model_id: int
    what: Literal["created", "changed", "moved", "deleted", "version_registered", "version_changed", "version_deleted"]
    name: str = ""
    workspace_id: int | None = None
    version: int | None = None


class PoolChanged(Struct, frozen=True, kw_only=True, tag_field="type", tag="pool.changed"):
    """Subject ``resolute.v1.pool.<name>.<what>``. ``queue`` asks the planner of the pool to plan."""

    pool: str
    what: Literal["capacity", "queue"]


PublicEvent = (
    ExperimentChanged
    | TrialChanged
    | AllocationChanged
    | TaskChanged
    | JobChanged
    | CheckpointChanged
    | WorkspaceChanged
    | UserChanged
    | GroupChanged
    | ModelChanged
    | PoolChanged
)
