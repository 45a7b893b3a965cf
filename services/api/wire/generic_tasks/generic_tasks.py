"""REST shapes of generic tasks (docs/reference/tasks-and-cli.md 6)."""

from __future__ import annotations

from services.api.wire.base import Message, WireEnum
from services.api.wire.experiments.experiments import LaunchWarning
from services.api.wire.experiments.model_definitions import File


class GenericTaskState(WireEnum):
    UNSPECIFIED = "GENERIC_TASK_STATE_UNSPECIFIED", 0
    ACTIVE = "GENERIC_TASK_STATE_ACTIVE", 1
    CANCELED = "GENERIC_TASK_STATE_CANCELED", 2
    COMPLETED = "GENERIC_TASK_STATE_COMPLETED", 3
    ERROR = "GENERIC_TASK_STATE_ERROR", 4
    PAUSED = "GENERIC_TASK_STATE_PAUSED", 5
    STOPPING_PAUSED = "GENERIC_TASK_STATE_STOPPING_PAUSED", 6
    STOPPING_CANCELED = "GENERIC_TASK_STATE_STOPPING_CANCELED", 7
    STOPPING_COMPLETED = "GENERIC_TASK_STATE_STOPPING_COMPLETED", 8
    STOPPING_ERROR = "GENERIC_TASK_STATE_STOPPING_ERROR", 9


class CreateGenericTaskRequest(Message):
    """``config`` is YAML text; with ``forked_from`` it may be empty, or say what is different."""

    config: str = ""
    context_directory: list[File] = []
    project_id: int = 0
    parent_id: str = ""
    inherit_context: bool = False
    forked_from: str = ""
    no_pause: bool | None = None


class CreateGenericTaskResponse(Message, kw_only=True):
    task_id: str
    warnings: list[LaunchWarning] = []


class KillGenericTaskRequest(Message):
    """``task_id`` is that of the path."""

    task_id: str = ""
    kill_from_root: bool = False


class GenericTaskConfigResponse(Message, kw_only=True):
    """``config`` is JSON text."""

    config: str
