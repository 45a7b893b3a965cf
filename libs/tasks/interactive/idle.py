"""Idle time of interactive tasks: how much of it a task may have, and when it has had that. Pure.

Only notebooks and TensorBoards are watched: a shell that nobody is in may have work of its own, and a command ends by
itself. Source: docs/reference/tasks-and-cli.md 2.10 (idle timeout).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from libs.cluster.config import ClusterConfig
from libs.tasks.interactive.durations import duration_seconds, format_duration
from libs.tasks.interactive.kinds import InteractiveType


def idle_timeout_s(task_type: InteractiveType, configured: str | None, cluster: ClusterConfig) -> float | None:
    """Seconds without use after which a task is ended; None is never.

    configured  ``idle_timeout`` of its configuration, in normal form
    """
    if task_type not in ("NOTEBOOK", "TENSORBOARD"):
        return None
    if configured is not None:
        return duration_seconds(configured)
    default = cluster.notebook_timeout if task_type == "NOTEBOOK" else cluster.tensorboard_timeout
    return float(default) if default else None


def is_idle(last_active_at: datetime, timeout_s: float, *, now: datetime, not_before: datetime) -> bool:
    """Whether a task has been without use for too long.

    not_before  nothing ends earlier: after an outage, whoever uses a task has to have the time to say so
    """
    return now > max(last_active_at + timedelta(seconds=timeout_s), not_before)


def idle_reason(timeout_s: float) -> str:
    """Why it is ended, as its log says."""
    return f"idle for more than {format_duration(round(timeout_s * 10**9))}: service is inactive"
