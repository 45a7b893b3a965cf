"""Limits of what may be held together: slots of a job, quotas of the pool and of namespaces, and what users, groups and
workspaces may hold. A request counts against each that concerns it, and starts when none would be exceeded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from services.scheduler.plan.limits.counters import LimitCounter, Reached, SlotCounter
from services.scheduler.plan.limits.hours import HourCounter
from services.scheduler.plan.ordering.ranking import Rank
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import HeldAllocation, HourLimit, PendingAllocation, PoolSnapshot, SlotLimit

_NONE: Final[Sequence[LimitCounter]] = ()


class Limits:
    """What is held, and may be. Concerns slots only: auxiliary tasks have no limit here."""

    def __init__(self, pool: PoolSnapshot) -> None:
        self._of_jobs = {
            job: SlotCounter(most, WaitReason.JOB_MAX_SLOTS, blocks=False, is_enforced=True)
            for job, most in pool.max_slots_by_job.items()
        }
        self._of_namespaces = {
            namespace: SlotCounter(most, WaitReason.WORKSPACE_QUOTA)
            for namespace, most in pool.quota_by_namespace.items()
        }
        if pool.quota_slots is not None:
            self._of_namespaces[""] = SlotCounter(pool.quota_slots, WaitReason.POOL_QUOTA)
        self._shared = {key: _counter_of(limit) for key, limit in pool.limits.items()}
        for held in pool.held:
            for counter in self._of(held):
                counter.hold(held)

    def reached(self, request: PendingAllocation, level: int) -> Reached | None:
        """The first limit that ``request`` would exceed. The smallest level is the most important one."""
        if not request.slots:
            return None
        for counter in self._of(request):
            if (reached := counter.reached(request, level)) is not None:
                return reached
        return None

    def wait(self, reached: Reached, level: int) -> None:
        """A request of ``level`` waits for what it has reached: what is less important must not use it up."""
        if reached.counter is not None:
            reached.counter.wait(level)

    def start(self, request: PendingAllocation) -> None:
        for counter in self._of(request):
            counter.start(request)

    def excess(self, held: Iterable[HeldAllocation], rank: Callable[[HeldAllocation], Rank]) -> list[HeldAllocation]:
        """Of ``held`` those that have to leave, so that no enforced limit is exceeded; the last by ``rank`` first."""
        enforced: list[LimitCounter] = [*self._of_jobs.values(), *self._shared.values()]
        over = defaultdict[LimitCounter, float](
            float, {counter: excess for counter in enforced if (excess := counter.excess()) > 0}
        )
        if not over:
            return []
        found = []
        for one in sorted(sorted(held, key=rank, reverse=True), key=lambda one: not one.leaving):
            due = [counter for counter in self._of(one) if over[counter] > 0 and counter.concerns(one)]
            if not (due and one.slots and (one.leaving or one.preemptible)):
                continue
            for counter in self._of(one):
                over[counter] -= one.slots
            if not one.leaving:
                found.append(one)
        return found

    def _of(self, one: HeldAllocation | PendingAllocation) -> Sequence[LimitCounter]:
        """The counters that it counts against, the narrowest first."""
        of_job, of_namespace = self._of_jobs.get(one.job), self._of_namespaces.get(one.namespace)
        if of_job is None and of_namespace is None and not one.limits:
            return _NONE
        found = (of_job, of_namespace, *(self._shared.get(key) for key in one.limits))
        return [each for each in found if each is not None]


def _counter_of(limit: SlotLimit | HourLimit) -> LimitCounter:
    if isinstance(limit, HourLimit):
        return HourCounter(limit)
    return SlotCounter(limit.most, WaitReason.SLOT_LIMIT, is_enforced=limit.preempts, limit=limit)
