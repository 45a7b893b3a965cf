"""Principal of a request, its verified sender: a user, perhaps by way of a task of theirs. Data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from libs.ids import AllocationId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class CallingTask:
    """The task that a token was made for, and what is its own.

    source_trial_id, source_checkpoints  where its configuration says that training begins
    """

    allocation_id: AllocationId
    task_id: str | None = None
    trial_id: int | None = None
    experiment_id: int | None = None
    source_trial_id: int | None = None
    source_checkpoints: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who sent a request, after its token was verified.

    task        set when the token was made for a task, whose owner the user is
    is_narrow   it reaches what is the task's own, and nothing else that the user may reach
    session_id  the row of the user's session; None for an allocation token
    expires_at  when the token is worth nothing any more; None for one that ends with its allocation
    """

    user_id: UserId
    username: str
    admin: bool = False
    task: CallingTask | None = None
    is_narrow: bool = False
    session_id: int | None = None
    expires_at: datetime | None = None
