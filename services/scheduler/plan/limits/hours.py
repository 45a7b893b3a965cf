"""Counter of slot-hours in a calendar period.

A request is charged when it starts, with all that it may use by its time limit, and without one with nothing: then its
hours count as they pass. So what says how long it runs never uses more than is left.
"""

from __future__ import annotations

from datetime import UTC
from math import inf
from typing import Final

from services.scheduler.plan.limits.counters import LimitCounter, Reached
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import HeldAllocation, HourLimit, PendingAllocation

_HOUR_S: Final = 3600
_STEPS: Final = 100
"""A detail says what is used in so many steps: each change of it is written down for everything that waits."""
_IN_WORDS: Final = {"day": "today", "week": "this week", "month": "this month"}
_EACH: Final = {"day": "a day", "week": "a week", "month": "a month"}
_ROUNDING_S: Final = 1e-3


class HourCounter(LimitCounter):
    def __init__(self, limit: HourLimit) -> None:
        super().__init__()
        self._limit = limit
        self._charged_s = 0.0

    def hold(self, held: HeldAllocation) -> None:
        """Nothing: what is held is in what the limit says is used."""

    def start(self, request: PendingAllocation) -> None:
        self._charged_s += charge_s(request)

    def exceeded(self, request: PendingAllocation) -> Reached | None:
        limit, charge = self._limit, charge_s(request)
        used = limit.spent_s + limit.rest_s + self._charged_s
        if (used < limit.most_s) if not charge else (used + charge <= limit.most_s + _ROUNDING_S):
            return None
        # Others may end early: then some of what is charged comes back within the period.
        may_come_free = limit.spent_s + charge <= limit.most_s and limit.spent_s < limit.most_s
        return Reached(WaitReason.HOUR_LIMIT, self._detail(used, charge), self if may_come_free else None)

    def excess(self) -> float:
        """Everything that has no end leaves when all is used."""
        # What others are charged ahead may come back: nobody leaves for that.
        return inf if self._limit.preempts and self._limit.spent_s >= self._limit.most_s else 0.0

    def concerns(self, held: HeldAllocation) -> bool:
        """What says when it ends is charged already."""
        return held.ends_at is None

    def _detail(self, used_s: float, charge: float) -> str:
        limit, most = self._limit, _hours(self._limit.most_s)
        if charge > limit.most_s:
            each = _EACH[limit.period]
            return f"{limit.holder} may use {most} slot-hours{limit.where} {each}, and this may use {_hours(charge)}"
        step = limit.most_s / _STEPS
        shown = min((used_s + _ROUNDING_S) // step * step, limit.most_s) if step else 0.0
        return (
            f"{limit.holder} has used {_hours(shown)} of {most} slot-hours{limit.where} {_IN_WORDS[limit.period]}; "
            f"the next period begins {limit.next_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        )


def charge_s(request: PendingAllocation) -> float:
    """Slot-seconds that it may use at most; 0 where it does not say how long it runs."""
    slots = request.slots + request.kept_slots
    return 0.0 if request.runs_for is None else slots * request.runs_for.total_seconds()


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR_S:.6g}"
