"""Names of failures in the REST API, in exit records and in task logs: one table, so that all agree. Pure.

Source: docs/reference/kubernetes.md 10.4; docs/reference/scheduling.md 7 (types of failures).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from libs.events.observations import FailureKind, ObservedPod


class FailureType(StrEnum):
    """The names are those of the REST API, the values what people read."""

    RESOURCES_FAILED = "resources failed with non-zero exit code"
    """Also of what somebody deleted, or of what never came to have an exit code: it is the usual type."""
    RESOURCES_ABORTED = "resources was aborted before it started"
    TASK_ERROR = "task failed without an associated exit code"
    """Nobody could make it, or nobody saw how it ended."""
    AGENT_FAILED = "agent failed while the container was running"
    RESTORE_ERROR = "RM failed to restore the allocation"


_TYPES: Final[Mapping[FailureKind, FailureType]] = {
    "FAILED": FailureType.RESOURCES_FAILED,
    "IMAGE_PULL": FailureType.RESOURCES_FAILED,
    "DELETED": FailureType.RESOURCES_FAILED,
    "LAUNCH_ERROR": FailureType.TASK_ERROR,
    "ABORTED": FailureType.RESOURCES_ABORTED,
    "NODE_LOST": FailureType.AGENT_FAILED,
}


def type_of(kind: FailureKind) -> FailureType | None:
    """The type of a failure of an allocation as a whole; None for the empty kind, which is no failure."""
    return _TYPES.get(kind)


def failure_of(pod: ObservedPod) -> FailureType | None:
    """How a pod failed; None while it has not ended, and for one that ended with exit code 0."""
    if pod.state != "TERMINATED" or not (pod.failure or pod.exit_code):
        return None
    return FailureType.TASK_ERROR if pod.vanished else _TYPES[pod.failure or "FAILED"]
