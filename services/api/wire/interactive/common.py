"""What the REST shapes of notebooks, TensorBoards, shells and commands have in common
(docs/reference/tasks-and-cli.md 2.2 and 2.7 to 2.9)."""

from __future__ import annotations

from typing import Any

from services.api.wire.base import Message, Timestamp, WireEnum
from services.api.wire.cluster.agents import Container
from services.api.wire.experiments.model_definitions import File
from services.api.wire.ordering import OrderBy
from services.api.wire.tasks.allocations import TaskState


class InteractiveTask(Message):
    """``exit_status`` is empty while it lives; ``start_time`` has milliseconds, since clients sort by the text."""

    id: str = ""
    description: str = ""
    state: TaskState = TaskState.UNSPECIFIED
    start_time: Timestamp | None = None
    container: Container | None = None
    display_name: str = ""
    user_id: int = 0
    username: str = ""
    resource_pool: str = ""
    exit_status: str = ""
    job_id: str = ""
    workspace_id: int = 0


class LaunchRequest(Message):
    """``config`` is what the user wrote; ``workspace_id`` 0 is that of everybody."""

    config: dict[str, Any] = {}
    template_name: str = ""
    files: list[File] = []
    workspace_id: int = 0


class SortBy(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    ID = "SORT_BY_ID", 1
    DESCRIPTION = "SORT_BY_DESCRIPTION", 2
    START_TIME = "SORT_BY_START_TIME", 4
    WORKSPACE_ID = "SORT_BY_WORKSPACE_ID", 5


class ListQuery(Message):
    """Those of any of ``users`` (names) and ``user_ids``; of everybody when both are empty."""

    sort_by: SortBy = SortBy.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    users: list[str] = []
    user_ids: list[int] = []
    workspace_id: int = 0


class SetPriorityRequest(Message):
    priority: int = 0
