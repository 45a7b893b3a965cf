"""Limits of what may be held together: slots of a job, and quotas of the pool and of namespaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from services.scheduler.plan.reasons import BLOCKS_ITS_NAMESPACE, WaitReason
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, PoolSnapshot


class Limits:
    """What is held, and may be. Concerns slots only: auxiliary tasks have no limit here."""

    def __init__(self, pool: PoolSnapshot) -> None:
        self._max_slots = pool.max_slots_by_job
        self._quotas = dict(pool.quota_by_namespace)
        if pool.quota_slots is not None:
            self._quotas[""] = pool.quota_slots
        self._by_job: Counter[str] = Counter()
        self._by_namespace: Counter[str] = Counter()
        for held in pool.held:
            self._hold(held)
        self._level: int | None = None
        self._awaited: set[str] = set()
        """Namespaces for whose quota something more important waits."""
        self._awaited_here: set[str] = set()
        """Those for whose quota something of the present level waits."""

    def reached(self, request: PendingAllocation, level: int) -> WaitReason | None:
        """The limit that ``request`` would exceed. Levels come one after the other, the most important first."""
        if not (slots := request.slots):
            return None
        max_slots = self._max_slots.get(request.job)
        if max_slots is not None and self._by_job[request.job] + slots > max_slots:
            return WaitReason.JOB_MAX_SLOTS
        if not self._quotas:
            return None
        if level != self._level:
            self._awaited |= self._awaited_here
            self._awaited_here = set()
            self._level = level
        return self._quota_reached(request.namespace, slots)

    def wait(self, request: PendingAllocation, reason: WaitReason) -> None:
        """``request`` waits for ``reason``: what is less important must not use up the same quota."""
        if reason in BLOCKS_ITS_NAMESPACE:
            self._awaited_here.add(request.namespace)

    def start(self, request: PendingAllocation) -> None:
        self._by_job[request.job] += request.slots
        self._by_namespace[request.namespace] += request.slots

    def excess(self, held: Iterable[HeldAllocation]) -> list[HeldAllocation]:
        """Of ``held``, in their order, those that have to leave so that no job holds more than it may."""
        over = {job: self._by_job[job] - most for job, most in self._max_slots.items() if self._by_job[job] > most}
        found = []
        for one in sorted(held, key=lambda one: not one.leaving):
            if over.get(one.job, 0) > 0 and one.slots:
                if one.leaving or one.preemptible:
                    over[one.job] -= one.slots
                if one.preemptible and not one.leaving:
                    found.append(one)
        return found

    def _hold(self, held: HeldAllocation) -> None:
        self._by_job[held.job] += held.slots
        self._by_namespace[held.namespace] += held.slots

    def _quota_reached(self, namespace: str, slots: int) -> WaitReason | None:
        if namespace in self._awaited:
            return WaitReason.BEHIND_PRIORITY
        quota = self._quotas.get(namespace)
        if quota is None or self._by_namespace[namespace] + slots <= quota:
            return None
        return WaitReason.WORKSPACE_QUOTA if namespace else WaitReason.POOL_QUOTA
