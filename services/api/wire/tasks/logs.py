"""REST shapes of task and trial logs (docs/reference/logs.md 1.3, 4)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Instant, Message, Timestamp
from services.api.wire.log_level import LogLevel
from services.api.wire.ordering import OrderBy


class LogsQuery(Message):
    """Filters narrow together; in ``rank_ids`` -1 is a line without a rank. ``allocation_ids`` is for tasks only."""

    limit: int = 0
    follow: bool = False
    order_by: OrderBy = OrderBy.UNSPECIFIED
    allocation_ids: list[str] = []
    agent_ids: list[str] = []
    container_ids: list[str] = []
    rank_ids: list[int] = []
    levels: list[LogLevel] = []
    stdtypes: list[str] = []
    sources: list[str] = []
    timestamp_before: Instant | None = None
    timestamp_after: Instant | None = None
    search_text: str = ""
    enable_regex: bool = False


class TaskLog(Message, kw_only=True):
    """``message`` is the whole line as clients print it, ``log`` what the task wrote."""

    id: str
    task_id: str
    allocation_id: str | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    container_id: str | UnsetType = UNSET
    rank_id: int | UnsetType = UNSET
    timestamp: Timestamp | None
    level: LogLevel
    log: str
    source: str | UnsetType = UNSET
    stdtype: str | UnsetType = UNSET
    message: str


class TrialLog(Message, kw_only=True):
    id: str
    trial_id: int
    agent_id: str | UnsetType = UNSET
    container_id: str | UnsetType = UNSET
    rank_id: int | UnsetType = UNSET
    timestamp: Timestamp | None
    level: LogLevel
    log: str
    source: str | UnsetType = UNSET
    stdtype: str | UnsetType = UNSET
    message: str


class LogFieldsQuery(Message):
    follow: bool = False


class TaskLogFields(Message):
    allocation_ids: list[str] = []
    agent_ids: list[str] = []
    container_ids: list[str] = []
    rank_ids: list[int] = []
    stdtypes: list[str] = []
    sources: list[str] = []


class TrialLogFields(Message):
    agent_ids: list[str] = []
    container_ids: list[str] = []
    rank_ids: list[int] = []
    stdtypes: list[str] = []
    sources: list[str] = []


class PostTaskLogsRequest(Message):
    """Records as shippers send them; ``libs/loglines/posted.py`` reads them."""

    logs: list[dict[str, Any]] = []
