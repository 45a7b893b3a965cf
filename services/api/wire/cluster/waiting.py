"""What waits for slots, and why. An endpoint of our own; the reference interface has none."""

from __future__ import annotations

from services.api.wire.base import Message, Pagination, Timestamp


class GetWaitingQuery(Message):
    resource_pool: str = ""
    job_id: str = ""
    task_id: str = ""
    experiment_id: int = 0
    offset: int = 0
    limit: int = 0


class WaitingAllocation(Message):
    allocation_id: str = ""
    task_id: str = ""
    job_id: str = ""
    name: str = ""
    """What users read, as in ``Trial 3 (Experiment 1)``."""
    username: str = ""
    resource_pool: str = ""
    slots: int = 0
    requested_at: Timestamp | None = None
    reason: str = ""
    """In words; empty until the queue has been planned for the first time."""
    reason_code: str = ""
    """The same for programs, which may rely on it to stay."""
    since: Timestamp | None = None
    """Since when it waits for this reason, whatever its numbers are."""
    ahead: int | None = None
    """Other jobs that are before it in the queue; null, as the fields below, until it has been estimated."""
    slots_ahead: int | None = None
    """What these jobs want."""
    estimated_start: Timestamp | None = None
    """When it is expected to start if nobody new comes; never in the past, null where nothing expected leads to it."""
    basis: str = ""
    """What the estimate depends on, in words."""
    estimate_made_at: Timestamp | None = None


class GetWaitingResponse(Message, kw_only=True):
    waiting: list[WaitingAllocation]
    pagination: Pagination
