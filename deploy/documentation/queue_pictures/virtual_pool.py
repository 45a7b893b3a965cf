"""Plays a few jobs on a few nodes with the planner, minute by minute, and keeps who had which slots and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from services.scheduler.plan.lifecycle import started
from services.scheduler.plan.planner import plan
from services.scheduler.plan.remembered import remembered
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolPolicy, PoolSnapshot

_BEGIN: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
_MINUTE: Final = timedelta(minutes=1)
_LONGEST: Final = 48 * 60


class PicturedJob(Struct, frozen=True, kw_only=True):
    """Times in minutes since the beginning."""

    name: str
    user: str
    slots: int
    """Of each pod."""
    pods: int = 1
    submitted: int = 0
    takes: int
    time_limit: int | None = None
    """As its owner declares it."""
    priority: int = 42


class Run(Struct, frozen=True, kw_only=True):
    """A job on slots of one node, without a break."""

    job: PicturedJob
    slots: tuple[int, ...]
    """Counted over all nodes, from the top."""
    begin: int
    end: int
    is_preempted: bool
    """It had to leave before it was done."""


class _Held(Struct, kw_only=True):
    job: PicturedJob
    begin: int
    slots: tuple[int, ...]
    allocation: HeldAllocation


def play(jobs: Sequence[PicturedJob], nodes: Mapping[str, int], policy: PoolPolicy) -> list[Run]:
    """Until all have ended. Who is asked to leave has left a minute later, and goes on where it was."""
    return _Play(jobs, nodes, policy).runs()


class _Play:
    def __init__(self, jobs: Sequence[PicturedJob], nodes: Mapping[str, int], policy: PoolPolicy) -> None:
        self._nodes = nodes
        self._policy = policy
        self._left = {job.name: job.takes for job in jobs}
        self._to_come = sorted(jobs, key=lambda job: job.submitted)
        self._jobs = {job.name: job for job in jobs}
        self._pending: dict[str, PendingAllocation] = {}
        self._held: dict[str, _Held] = {}
        self._runs: list[Run] = []

    def runs(self) -> list[Run]:
        for minute in range(_LONGEST):
            self._end(minute)
            self._submit(minute)
            while self._plan(minute):
                pass
            if not self._to_come and not self._pending and not self._held:
                return self._runs
        raise AssertionError("the jobs of a picture have to end")

    def _submit(self, minute: int) -> None:
        while self._to_come and self._to_come[0].submitted <= minute:
            self._request(self._to_come.pop(0), minute)

    def _request(self, job: PicturedJob, minute: int) -> None:
        self._pending[job.name] = PendingAllocation(
            allocation=job.name,
            job=job.name,
            pods=(job.slots,) * job.pods,
            priority=job.priority,
            submitted_at=_at(job.submitted) + timedelta(seconds=list(self._jobs).index(job.name)),
            requested_at=_at(minute),
            share=job.user,
            preemptible=True,
            runs_for=None if job.time_limit is None else timedelta(minutes=job.time_limit),
            expected=timedelta(minutes=job.takes),
        )

    def _end(self, minute: int) -> None:
        for name, held in list(self._held.items()):
            is_done = minute - held.begin >= self._left[name]
            if not is_done and not held.allocation.leaving:
                continue
            del self._held[name]
            self._left[name] -= minute - held.begin
            self._keep(held, minute, is_preempted=not is_done)
            if not is_done:
                self._request(held.job, minute)

    def _keep(self, held: _Held, minute: int, *, is_preempted: bool) -> None:
        slots = iter(held.slots)
        for _, count in held.allocation.pods:
            run = Run(
                job=held.job,
                slots=tuple(next(slots) for _ in range(count)),
                begin=held.begin,
                end=minute,
                is_preempted=is_preempted,
            )
            self._runs.append(run)

    def _plan(self, minute: int) -> bool:
        """Whether anything has started: then there may be more to do."""
        made = plan(self._snapshot(minute))
        for gone in made.preempted:
            held = self._held[gone.allocation]
            held.allocation = msgspec.structs.replace(held.allocation, leaving=True)
        for request in remembered(made, list(self._pending.values())):
            self._pending[request.allocation] = request
        starts = list(made.starts)
        for start in starts:
            request, job = self._pending.pop(start.allocation), self._jobs[start.allocation]
            places = tuple((place.node, place.slots) for place in start.placements)
            ends_at = None if job.time_limit is None else _at(minute + job.time_limit)
            allocation = started(request, places, started_at=_at(minute), ends_at=ends_at)
            self._held[start.allocation] = _Held(job=job, begin=minute, slots=self._free(places), allocation=allocation)
        return bool(starts)

    def _free(self, places: Sequence[tuple[str, int]]) -> tuple[int, ...]:
        """The uppermost free slots of those nodes, in the order of ``places``."""
        taken = {slot for held in self._held.values() for slot in held.slots}
        found: list[int] = []
        for node, count in places:
            mine = [slot for slot in self._slots_of(node) if slot not in taken][:count]
            taken |= set(mine)
            found += mine
        return tuple(found)

    def _slots_of(self, node: str) -> range:
        first = 0
        for name, slots in self._nodes.items():
            if name == node:
                return range(first, first + slots)
            first += slots
        raise KeyError(node)

    def _snapshot(self, minute: int) -> PoolSnapshot:
        return PoolSnapshot(
            nodes=tuple(NodeSlots(name=name, slots=slots, max_aux=0) for name, slots in self._nodes.items()),
            held=tuple(held.allocation for held in self._held.values()),
            pending=tuple(self._pending.values()),
            policy=self._policy,
            now=_at(minute),
        )


def _at(minute: int) -> datetime:
    return _BEGIN + minute * _MINUTE
