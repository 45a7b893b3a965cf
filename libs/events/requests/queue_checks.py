"""Questions to the scheduler: when requests would start that nobody has submitted, and when some start that wait.
Request and reply on ``subjects.CHECK_QUEUE``; nothing is left of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

MOST: Final = 16
"""Of each kind in one question; the scheduler leaves what comes after them unanswered."""


class HypotheticalRequest(Struct, frozen=True, kw_only=True):
    """What the first allocation of an experiment or of another task would ask for."""

    task_type: str = "TRIAL"
    pool: str
    slots: int
    num_pods: int
    priority: int | None = None
    weight: float = 1.0
    max_slots: int | None = None
    time_limit_s: int | None = None
    is_preemptible: bool = True
    preemption_timeout_s: int = 3600
    pod_spec: dict[str, Any] | None = None
    """What would be stored of it in its ``environment``."""
    topology: dict[str, str] = {}
    """The same in its ``resources``; empty where it says nothing."""
    owner_id: int
    workspace_id: int


class EmptyPoolRequest(Struct, frozen=True, kw_only=True):
    """What an allocation would ask for of a pool in which nothing else runs."""

    pool: str
    task_type: str
    slots: int
    num_pods: int
    pod_spec: dict[str, Any] | None = None
    """What would be stored of it in its ``environment``."""
    topology: dict[str, str] = {}
    """The same in its ``resources``; empty where it says nothing."""


class WaitingRequest(Struct, frozen=True, kw_only=True):
    pool: str
    allocation: str


class QueueCheck(Struct, frozen=True, kw_only=True, tag="queue.checked"):
    requests: tuple[HypotheticalRequest, ...] = ()
    """Each is looked at by itself."""
    waiting: tuple[WaitingRequest, ...] = ()
    """Of which there is no estimate yet, as they have come just now or are far behind."""
    in_empty_pool: tuple[EmptyPoolRequest, ...] = ()
    """Which are possible at all, whatever runs and waits."""


class QueueAnswer(Struct, frozen=True, kw_only=True):
    """What would become of one request if it was submitted now."""

    starts_now: bool = False
    nodes: tuple[str, ...] = ()
    """Of its pods, where it starts now."""
    is_possible: bool = True
    """False when it would not even start if nothing else ran."""
    reason_code: str = ""
    reason: str = ""
    """Why it would wait, for programs and for people."""
    estimated_start: datetime | None = None
    """None where nothing that is expected leads to its start, or where the queue before it is too long to say."""
    basis: str = ""
    jobs_ahead: int | None = None
    slots_ahead: int | None = None


class QueueAnswers(Struct, frozen=True, kw_only=True):
    answers: tuple[QueueAnswer, ...]
    """In the order of the requests."""
    waiting: tuple[QueueAnswer | None, ...] = ()
    """In their order; None of what waits no longer. Without reasons, which are in the rows."""
    in_empty_pool: tuple[QueueAnswer, ...] = ()
    """In their order; none of a scheduler that does not know the question. Without estimates."""
