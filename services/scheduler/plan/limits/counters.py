"""Counters of what is held under one limit, and the words for what it leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, SlotLimit


class Reached(NamedTuple):
    """A limit that a request would exceed."""

    reason: WaitReason
    detail: str = ""
    counter: LimitCounter | None = None
    """What less important requests must not use up meanwhile; None where they may."""


class LimitCounter(ABC):
    """What a more important request waits for is not used up by less important ones."""

    def __init__(self) -> None:
        self._awaited_at: int | None = None
        """The most important level at which a request waits for it."""

    def reached(self, request: PendingAllocation, level: int) -> Reached | None:
        """What keeps a request of ``level`` from starting; the smallest level is the most important one."""
        if self._awaited_at is not None and self._awaited_at < level:
            return Reached(WaitReason.BEHIND_PRIORITY)
        return self.exceeded(request)

    def wait(self, level: int) -> None:
        """A request of ``level`` waits for it."""
        self._awaited_at = level if self._awaited_at is None else min(level, self._awaited_at)

    @abstractmethod
    def hold(self, held: HeldAllocation) -> None:
        """It is held as the plan begins."""

    @abstractmethod
    def start(self, request: PendingAllocation) -> None:
        """The plan starts it."""

    @abstractmethod
    def exceeded(self, request: PendingAllocation) -> Reached | None:
        """What it says when ``request`` would exceed it."""

    @abstractmethod
    def excess(self) -> float:
        """Slots that have to be given back, where that is enforced."""

    @abstractmethod
    def concerns(self, held: HeldAllocation) -> bool:
        """Whether ``held`` may be asked to leave for it."""


class SlotCounter(LimitCounter):
    """Slots that are held under one limit: that of a job, of a namespace, or a shared one."""

    def __init__(
        self,
        most: int,
        reason: WaitReason,
        *,
        blocks: bool = True,
        is_enforced: bool = False,
        limit: SlotLimit | None = None,
    ) -> None:
        """``blocks``: less important requests do not use up what a more important one waits for. ``is_enforced``: who
        holds more is asked to leave."""
        super().__init__()
        self._most = most
        self._reason = reason
        self._blocks = blocks
        self._is_enforced = is_enforced
        self._limit = limit
        self._held = limit.elsewhere if limit else 0
        self._leaving = limit.leaving if limit else 0

    def hold(self, held: HeldAllocation) -> None:
        self._held += held.slots

    def start(self, request: PendingAllocation) -> None:
        self._held += request.slots

    def exceeded(self, request: PendingAllocation) -> Reached | None:
        slots = request.slots
        if self._held + slots <= self._most:
            return None
        # Of a shared limit: one that could not start if nobody held anything waits for nothing.
        is_awaited = self._blocks and (self._limit is None or slots <= self._most)
        return Reached(self._reason, self._detail(slots), self if is_awaited else None)

    def excess(self) -> float:
        """Without those whose holders in other pools leave already."""
        return self._held - self._leaving - self._most if self._is_enforced else 0

    def concerns(self, held: HeldAllocation) -> bool:
        return True

    def _detail(self, slots: int) -> str:
        if self._limit is None:
            return ""
        who, where = self._limit.holder, self._limit.where
        if slots > self._most:
            return f"{who} may hold {self._most} slots{where}, and this needs {slots}"
        return f"{who} holds {self._held} of {self._most} slots{where}"
