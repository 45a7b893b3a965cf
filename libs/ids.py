"""Identifiers and their formats (docs/reference/harness-protocol.md section 1)."""

from __future__ import annotations

import secrets
import uuid
from typing import Final, NewType

from libs.errors import InvalidRequest

ExperimentId = NewType("ExperimentId", int)
TrialId = NewType("TrialId", int)
TaskId = NewType("TaskId", str)
AllocationId = NewType("AllocationId", str)
JobId = NewType("JobId", str)
UserId = NewType("UserId", int)
PoolName = NewType("PoolName", str)


def new_uuid() -> str:
    """A random version 4 UUID in its usual text form."""
    return str(uuid.uuid4())


RANDOM_PART_BYTES: Final = 10


def new_random_part() -> str:
    """The end of a name that nobody may guess: 20 hexadecimal digits."""
    return secrets.token_hex(RANDOM_PART_BYTES)


def canonical_uuid(text: str) -> str:
    """A UUID as it is stored, for there are many ways to write one; what is none stays as it is."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text


def require_uuid(text: str, what: str) -> str:
    """A UUID as it is stored. Raises InvalidRequest, which calls it ``what``, for what is none."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise InvalidRequest(f"{what} '{text}' is not a UUID") from None


def trial_task_id(experiment: int, request_id: str, continuation: int = 0) -> TaskId:
    """Task id of a trial: ``<experiment>.<request id>``, with ``-<n>`` for the n-th continuation."""
    suffix = f"-{continuation}" if continuation else ""
    return TaskId(f"{experiment}.{request_id}{suffix}")


def allocation_id(task: str, run: int) -> AllocationId:
    """Allocation id of the ``run``-th attempt (1 is the first) at a task."""
    return AllocationId(f"{task}.{run}")


def task_of_allocation(allocation: str) -> TaskId | None:
    """The task an allocation belongs to: what stands before the last dot; None for an id without a dot."""
    task, dot, _ = allocation.rpartition(".")
    return TaskId(task) if dot and task else None
