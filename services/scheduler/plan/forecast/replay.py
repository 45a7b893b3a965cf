"""Plays the queue of a pool forward in virtual time, with the planner that plans it: when each request starts.

Who holds slots gives them back when that is expected, or for maintenance, who starts runs as long as is expected, who
is asked to leave leaves and comes back to the queue, who is moved goes on elsewhere, and nobody new comes but those who
wait in other pools first. The planner sees what it would see: declared ends, never expected ones. Ends that lie close
together, in relation to how far off they are, are one instant, the last of theirs: so the number of plans is bounded,
and no start is expected before there is room.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Final

import msgspec
from msgspec import Struct

from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.forecast.hour_use import HourUse
from services.scheduler.plan.forecast.maintenance_ends import MaintenanceEnds
from services.scheduler.plan.forecast.moves import MovesOfReplay
from services.scheduler.plan.forecast.past_use import PastUse
from services.scheduler.plan.lifecycle import queued_again, started
from services.scheduler.plan.nodes.eligible import EligibilityMemo
from services.scheduler.plan.planner import plan
from services.scheduler.plan.remembered import remembered
from services.scheduler.plan.snapshot import EPOCH, HeldAllocation, PendingAllocation, PoolSnapshot

LEAVES_WITHIN: Final = timedelta(minutes=1)
"""Expected of allocations that are asked to leave."""
_HORIZON: Final = timedelta(days=3660)
"""What is only possible later is not waited for: nobody knows what will be then."""
_GRAIN: Final = timedelta(seconds=15)
_GRAIN_PER_DISTANCE: Final = 0.05


class ExpectedStart(Struct, frozen=True, kw_only=True):
    at: datetime
    number: int
    """Place in the order of the starts."""
    freed: Mapping[str, int] = {}
    """Slots that it gets from allocations that hold them now, by allocation."""
    freed_by_queue: int = 0
    """Allocations of the queue that run on its slots before it."""


class Replay:
    """One replay. ``step`` makes one plan, and may be called as slowly as whoever calls it likes.

    snapshot  the pool as it is now
    lengths   how long pending allocations run from their start; the rest: ``otherwise``
    ends      when held allocations are expected to end, each later than now; the rest: ``otherwise`` from now
    settles   the plan of now is made as the scheduler makes it, until it has nothing left to do; of the many after it
              each leaves that to the next
    """

    def __init__(
        self,
        snapshot: PoolSnapshot,
        *,
        lengths: Mapping[str, timedelta],
        ends: Mapping[str, datetime],
        otherwise: timedelta,
        settles: bool = True,
    ) -> None:
        # Moves that are under way have their new places already.
        moved = (msgspec.structs.replace(one, allocation=f"{one.allocation} moved") for one in snapshot.moving)
        snapshot = msgspec.structs.replace(snapshot, held=(*snapshot.held, *moved), moving=())
        self._snapshot = snapshot
        self._memo = EligibilityMemo()
        self._began_at = self.now = snapshot.now
        self._lengths = lengths
        self._otherwise = otherwise
        self._settles = settles
        self._pending: dict[str, PendingAllocation] = {}
        self._later = sorted(snapshot.pending, key=_begins_to_wait, reverse=True)
        """Those that are not in the queue yet, the next one last."""
        self._let_in()
        self._held = {one.allocation: one for one in snapshot.held}
        self._now_held = frozenset(self._held)
        self._left: dict[str, timedelta] = {}
        """Of those that were asked to leave in the replay: how long they run when they come back."""
        self._moves = MovesOfReplay(snapshot.moves_left)
        self._maintenance = MaintenanceEnds(snapshot.maintenance)
        self._end_at = {one.allocation: self._end_of(one, ends) for one in snapshot.held}
        self._ends = [(at, allocation) for allocation, at in self._end_at.items()]
        heapify(self._ends)
        self._use = HourUse(snapshot.limits, snapshot.held, snapshot.now)
        self._past_use = PastUse(snapshot)
        self._freed: dict[str, list[tuple[str, int]]] = {}
        """Of each node: who has given back how many slots."""
        self._places: dict[str, tuple[tuple[str, int], ...]] = {}
        self._wake_at: datetime | None = None
        self.starts: dict[str, ExpectedStart] = {}
        """Found so far, of allocations that are pending now."""
        self.first: Plan | None = None
        """The plan that would be made now."""

    def _end_of(self, held: HeldAllocation, ends: Mapping[str, datetime]) -> datetime:
        if held.leaving:
            return self._began_at + LEAVES_WITHIN
        return self._until_maintenance(held, ends.get(held.allocation, self._began_at + self._otherwise))

    def _until_maintenance(self, held: HeldAllocation, end: datetime) -> datetime:
        """``end``, or when maintenance begins for which it leaves before."""
        leaves_at = self._maintenance.before(held, end, self.now) if self._maintenance else None
        if leaves_at is None:
            return end
        if held.preemptible:
            self._left[held.allocation] = end - leaves_at
        return leaves_at

    def _let_in(self) -> None:
        """Those whose time in other queues is over."""
        while self._later and _begins_to_wait(self._later[-1]) <= self.now:
            one = self._later.pop()
            self._pending[one.allocation] = one

    def step(self) -> bool:
        """Plan once, and go on to the next instant; False when nothing more will start."""
        self._let_in()
        made = plan(
            msgspec.structs.replace(
                self._snapshot,
                held=tuple(self._held.values()),
                pending=tuple(self._pending.values()),
                moving=self._moves.kept,
                moves_left=self._moves.left,
                limits=self._use.limits(self._held.values(), self.now),
                past_use=self._past_use.go_on(self._held.values(), self.now),
                now=self.now,
            ),
            self._memo,
            settles=self._settles and self.first is None,
        )
        self.first = self.first or made
        self._start(made)
        self._remember(made)
        return bool(self._pending or self._later) and self._go_on()

    def _start(self, made: Plan) -> None:
        for start in made.starts:
            request = self._pending.pop(start.allocation)
            pods = tuple((place.node, place.slots) for place in start.placements)
            self._held[start.allocation] = started(
                request,
                pods,
                started_at=self.now,
                ends_at=None if request.runs_for is None else self.now + request.runs_for,
            )
            length = self._left.pop(start.allocation, None) or self._lengths.get(start.allocation, self._otherwise)
            self._ends_at(start.allocation, self._until_maintenance(self._held[start.allocation], self.now + length))
            if start.allocation not in self.starts and start.allocation not in self._now_held:
                freed, by_queue = self._who_gave(pods)
                self.starts[start.allocation] = ExpectedStart(
                    at=self.now, number=len(self.starts), freed=freed, freed_by_queue=by_queue
                )

    def _who_gave(self, pods: tuple[tuple[str, int], ...]) -> tuple[dict[str, int], int]:
        """Whose slots these are: those that were given back last on each node."""
        freed: dict[str, int] = {}
        by_queue: set[str] = set()
        for node, slots in pods:
            left = slots or 1
            given = self._freed.get(node, [])
            while left > 0 and given:
                allocation, units = given.pop()
                used = min(units, left)
                left -= used
                if units > used:
                    given.append((allocation, units - used))
                if allocation in self._now_held:
                    freed[allocation] = freed.get(allocation, 0) + used
                else:
                    by_queue.add(allocation)
        return freed, len(by_queue)

    def _remember(self, made: Plan) -> None:
        """What the scheduler keeps of a plan for the plans after it."""
        for move in made.moved:
            self._moves.begin(move, self._held[move.allocation])
        for gone in (*(one.allocation for one in made.preempted), *(one.allocation for one in made.moved)):
            self._held[gone] = msgspec.structs.replace(self._held[gone], leaving=True)
            left = self._end_at[gone] - self.now + self._left.get(gone, timedelta())
            self._left[gone] = max(left, LEAVES_WITHIN)
            self._ends_at(gone, self.now + LEAVES_WITHIN)
        self._pending.update({request.allocation: request for request in remembered(made, self._pending.values())})
        policy = self._snapshot.policy
        turns = [
            *(head.since + after for head in made.blocked for after in (policy.hold_limit, policy.max_overtaken_for)),
            *(one.ends_at for one in self._snapshot.maintenance),
            self._use.next_turn(self._pending.values(), self._held.values(), self.now) or self.now,
            *(_begins_to_wait(one) for one in self._later[-1:]),
        ]
        ahead = (turn for turn in turns if turn > self.now and turn - self._began_at <= _HORIZON)
        self._wake_at = min(ahead, default=None)

    def _ends_at(self, allocation: str, at: datetime) -> None:
        self._end_at[allocation] = at
        heappush(self._ends, (at, allocation))

    def _go_on(self) -> bool:
        """To the next instant at which a plan may differ; False when there is none."""
        while self._ends and self._is_stale(*self._ends[0]):
            heappop(self._ends)
        first = self._ends[0][0] if self._ends else None
        if self._wake_at is not None and (first is None or self._wake_at < first):
            self.now = self._wake_at
            return True
        if first is None:
            return False
        until = first + max(_GRAIN, (first - self._began_at) * _GRAIN_PER_DISTANCE)
        while self._ends and self._ends[0][0] <= until:
            at, allocation = heappop(self._ends)
            self._end(at, allocation)
        return True

    def _is_stale(self, at: datetime, allocation: str) -> bool:
        """Whether it has left, or leaves, at another time."""
        return allocation not in self._held or self._end_at[allocation] != at

    def _end(self, at: datetime, allocation: str) -> None:
        if self._is_stale(at, allocation):
            return
        held = self._held.pop(allocation)
        self.now = max(self.now, at)
        self._use.end(held, at)
        for node, slots in held.pods:
            self._freed.setdefault(node, []).append((allocation, slots or 1))
        if allocation in self._left:
            pods = (1,) * held.slots if held.most_per_pod else tuple(slots for _, slots in held.pods)
            self._pending[allocation] = self._moves.end(queued_again(held, pods, requested_at=self.now))


def _begins_to_wait(request: PendingAllocation) -> datetime:
    return request.not_before or EPOCH
