"""Requests that have found no room since something changed last, so that those like them need not look again.

Where a pool is divided, those of each share have classes of their own. They differ in whom they may ask to leave and in
whom they may pass, but not in what has room for them.
"""

from __future__ import annotations

from collections.abc import Callable

from services.scheduler.plan.blocked import Clearance
from services.scheduler.plan.ordering.queue_classes import QueueClass
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PendingAllocation

Why = tuple[WaitReason, str]
"""Why such a request waits, and what is missing."""


class LooksInVain:
    def __init__(self) -> None:
        self._found: dict[tuple[int | None, Clearance], Why] = {}
        self._clearances: dict[int, Clearance] = {}

    def clearance(self, queue: QueueClass, find: Callable[[PendingAllocation], Clearance]) -> Clearance:
        """What ``find`` says of the first of ``queue``, and of everybody who is like it."""
        if queue.kind is None:
            return find(queue.first)
        found = self._clearances.get(queue.kind)
        if found is None:
            found = self._clearances[queue.kind] = find(queue.first)
        return found

    def of(self, queue: QueueClass, clearance: Clearance) -> Why | None:
        """Why the first of ``queue`` has no room with that clearance; None where that has to be looked at."""
        return self._found.get((queue.kind, clearance))

    def note(self, queue: QueueClass, clearance: Clearance, why: Why) -> None:
        """It has none, unless others are asked to leave for it."""
        if queue.kind is not None:
            self._found[queue.kind, clearance] = why

    def forget(self) -> None:
        """Something has got its place, or is kept one, or those who are looked at next are less important."""
        self._found.clear()
        self._clearances.clear()
