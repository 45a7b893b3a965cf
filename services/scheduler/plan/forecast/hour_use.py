"""What is used of limits of slot-hours in a replay: it grows with what runs, and begins anew with each period.

What has a time limit is charged for all of it from its start until its end, as the scheduler does it
(plan/limits/hours.py). What runs in other pools is taken to go on using what it may still use in this period.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, cast

import msgspec

from libs.slot_hours.periods import Period, next_begin
from services.scheduler.plan.limits.hours import HourCounter
from services.scheduler.plan.snapshot import HeldAllocation, HourLimit, PendingAllocation, SlotLimit

_NONE: Final = timedelta()


class HourUse:
    """limits  as they are at ``now``, by key; those of slots at once stay as they are
    held    what is held at ``now``: what ``limits`` say of use has what it has used until then
    """

    def __init__(
        self, limits: Mapping[str, SlotLimit | HourLimit], held: Iterable[HeldAllocation], now: datetime
    ) -> None:
        self._limits = dict(limits)
        self._hours = {key: limit for key, limit in limits.items() if isinstance(limit, HourLimit)}
        self._since = dict.fromkeys(self._hours, now)
        """Up to when what is held is in what a limit says is spent."""
        for key, limit in self._hours.items():
            own = sum(_rest_s(one, now) for one in held if key in one.limits)
            self._hours[key] = msgspec.structs.replace(limit, rest_s=max(limit.rest_s - own, 0.0))

    def end(self, one: HeldAllocation, at: datetime) -> None:
        """``one`` gives back what it holds, no earlier than what has been ended before."""
        self._go_on(at)
        for key in self._of(one):
            limit = self._hours[key]
            spent_s = limit.spent_s + _spent_s(one, self._since[key], at)
            self._hours[key] = msgspec.structs.replace(limit, spent_s=spent_s)

    def limits(self, held: Iterable[HeldAllocation], now: datetime) -> Mapping[str, SlotLimit | HourLimit]:
        """As a plan at ``now`` has to see them while ``held`` run."""
        if not self._hours:
            return self._limits
        self._go_on(now)
        spent, rest = dict.fromkeys(self._hours, 0.0), dict.fromkeys(self._hours, 0.0)
        for one in held:
            for key in self._of(one):
                spent[key] += _spent_s(one, self._since[key], now)
                rest[key] += _rest_s(one, now)
        used = {
            key: msgspec.structs.replace(limit, spent_s=limit.spent_s + spent[key], rest_s=limit.rest_s + rest[key])
            for key, limit in self._hours.items()
        }
        return self._limits | used

    def next_turn(
        self, pending: Iterable[PendingAllocation], held: Iterable[HeldAllocation], now: datetime
    ) -> datetime | None:
        """When the first of ``pending`` is let through by all of its limits of slot-hours because periods have begun;
        None where that is in the way of none, or would be in a new period, too."""
        if not self._hours:
            return None
        limits = self.limits(held, now)
        turns = []
        for request in {(one.limits, one.slots, one.runs_for): one for one in pending if one.slots}.values():
            own = [limit for key in self._of(request) if isinstance(limit := limits[key], HourLimit)]
            reached = [limit for limit in own if HourCounter(limit).exceeded(request) is not None]
            if reached and all(HourCounter(_anew(limit)).exceeded(request) is None for limit in reached):
                turns.append(max(limit.next_at for limit in reached))
        return min(turns, default=None)

    def _go_on(self, now: datetime) -> None:
        """Into the periods that ``now`` is in."""
        for key, limit in self._hours.items():
            if limit.next_at > now:
                continue
            # Of several periods that have passed meanwhile only the last one matters.
            last = limit.next_at
            while (following := next_begin(cast(Period, limit.period), last)) <= now:
                last = following
            self._since[key] = last
            self._hours[key] = msgspec.structs.replace(_anew(limit), next_at=following)

    def _of(self, one: HeldAllocation | PendingAllocation) -> list[str]:
        return [key for key in one.limits if key in self._hours]


def _anew(limit: HourLimit) -> HourLimit:
    """As it is at the beginning of a period."""
    return msgspec.structs.replace(limit, spent_s=0.0, rest_s=0.0)


def _spent_s(one: HeldAllocation, since: datetime, until: datetime) -> float:
    return one.slots * max(until - max(since, one.started_at), _NONE).total_seconds()


def _rest_s(one: HeldAllocation, now: datetime) -> float:
    """What it may still use, as far as it says how long it runs."""
    if one.ends_at is None:
        return 0.0
    return one.slots * max(one.ends_at - now, _NONE).total_seconds()
