"""One pass over the queue of a lane, in the order of the policy: starts what has room, and decides what becomes of the
first that has none.

Others of its level may pass such a request, but not use the room that is kept for it (blocked.py); less important ones
start where they cannot be in its way. Where the policy preempts, those whose place it may take are asked to leave at
once, and the places are its own from then on (preemption.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from services.scheduler.plan.blocked import BlockedRequests, Clearance, has_been_passed_enough
from services.scheduler.plan.decisions import Decision, Move, Nominate, Plan, Preempt, Start, Wait
from services.scheduler.plan.free_room import FreeRoom
from services.scheduler.plan.limits.counters import Reached
from services.scheduler.plan.limits.limits import Limits
from services.scheduler.plan.missing import Missing
from services.scheduler.plan.nodes.eligible import Names
from services.scheduler.plan.ordering.fair_share import FairShareOrder, ShareTree, owner_of
from services.scheduler.plan.ordering.in_vain import LooksInVain
from services.scheduler.plan.ordering.order import QueueOrder, RankOrder
from services.scheduler.plan.ordering.queue_classes import QueueClass, classify
from services.scheduler.plan.ordering.ranking import ranking
from services.scheduler.plan.preemption.consolidation import Consolidation
from services.scheduler.plan.preemption.preemption import Preemption
from services.scheduler.plan.preemption.returning import is_resting
from services.scheduler.plan.preemption.searched import SearchMemo
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.room.demand import Demands
from services.scheduler.plan.room.occupancy import Occupancy
from services.scheduler.plan.room.stock import Stock
from services.scheduler.plan.snapshot import PendingAllocation, Placement, PoolSnapshot

_NOTHING: Final[Mapping[str, PendingAllocation]] = {}
_UNLIMITED: Final = PoolSnapshot(nodes=None)
_OWN: Final = frozenset(
    {
        WaitReason.TOO_LARGE,
        WaitReason.NO_SUCH_NODE,
        WaitReason.NO_SUCH_DOMAIN,
        WaitReason.FOREIGN_PODS,
        WaitReason.NODES_EXCLUDED,
        WaitReason.MAINTENANCE,
    }
)
"""Reasons for which no other request has to wait."""


class QueuePass:
    """Plans the requests with slots of a pool, or those without."""

    def __init__(
        self,
        pool: PoolSnapshot,
        demands: Demands,
        stock: Stock,
        *,
        auxiliary: bool,
        movable: Mapping[str, PendingAllocation] = _NOTHING,
        searched: SearchMemo | None = None,
    ) -> None:
        """
        movable   what may be moved, by allocation, as requests
        searched  what earlier plans have searched in vain among it
        """
        self._pool = pool
        self._no_room = WaitReason.NO_AUX_ROOM if auxiliary else WaitReason.NO_ROOM
        self._rank = ranking(pool.policy)
        self._occupancy = Occupancy(pool, demands, stock, auxiliary=auxiliary)
        self._missing = Missing(pool, demands.eligible)
        self._free_room = FreeRoom(self._occupancy)
        # They are of slots, and auxiliary tasks have none.
        self._limits = Limits(_UNLIMITED if auxiliary else pool)
        self._held = [one for one in pool.held if bool(one.slots) is not auxiliary]
        self._pending = [one for one in pool.pending if bool(one.slots) is not auxiliary]
        # Without slots there is nothing to be divided: who came first comes first (docs/reference/scheduling.md 5.3).
        divides = pool.policy.queue in ("fair_share", "round_robin") and not auxiliary
        self._tree = self._tree_of_shares() if divides else None
        self._preemption = Preemption(pool, self._occupancy, self._rank, self._tree, self._held)
        self._consolidation = Consolidation(pool, self._occupancy, movable, searched or SearchMemo())
        self._blocked = BlockedRequests(pool, self._occupancy, self._has_less)
        self._in_vain = LooksInVain()
        self._nodes_of_kind: dict[int | None, Names | None] = {}
        self._level: int | None = None
        self._blocked_here: list[QueueClass] = []
        self._alone: Counter[Names | None] = Counter()
        """Requests of the present level without room whose classes went on, by the nodes that they may use."""
        self._decisions: dict[str, Decision] = {}
        self._preempted: list[Preempt] = []
        self._nominated: list[Nominate] = []
        self._moved: list[Move] = []

    def run(self) -> Plan:
        self._release_excess()
        longest_blocked, requests = self._split(self._settle_nominations())
        order = self._order(requests)
        while (queue := order.pop()) is not None:
            if longest_blocked is not None and not self._has_less(queue.first, longest_blocked):
                order.put_back(queue)
                self._look_at_alone(longest_blocked)
                order.update(owner_of(longest_blocked))
                longest_blocked = None
            else:
                request = queue.first
                self._look_at(queue, order)
                if longest_blocked is not None and isinstance(self._decisions[request.allocation], Start):
                    longest_blocked = msgspec.structs.replace(longest_blocked, overtaken=longest_blocked.overtaken + 1)
        if longest_blocked is not None:
            self._look_at_alone(longest_blocked)
        self._leave_level()
        return Plan(
            decisions=tuple(self._decisions.values()),
            preempted=tuple(self._preempted),
            nominated=tuple(self._nominated),
            blocked=self._blocked.seen(),
            moved=tuple(self._moved),
        )

    def lacks_room(self, request: PendingAllocation) -> bool:
        """Whether there is no room for it after the plan, not even when those have left that are leaving."""
        return not self._occupancy.has_room_when_left(request)

    def free_places(self, request: PendingAllocation, *, in_reserved: bool) -> tuple[Placement, ...]:
        """Places for as many of its pods as have room after the plan; nothing is taken.

        in_reserved  room that is kept for others will do
        """
        return self._occupancy.free_places(request, in_reserved=in_reserved)

    def _tree_of_shares(self) -> ShareTree:
        by_slots = self._pool.policy.queue == "fair_share"
        weights, past = (self._pool.weights, self._pool.past_use) if by_slots else ({}, {})
        tree = ShareTree(weights, float if by_slots else lambda _: 1.0, past)
        for held in self._held:
            tree.want(owner_of(held), held.slots)
            if not held.leaving:
                tree.add(owner_of(held), held.slots)
        for (owner, slots), times in Counter((owner_of(one), one.slots) for one in self._pending).items():
            tree.want(owner, slots, times)
        return tree

    def _has_less(self, request: PendingAllocation, head: PendingAllocation) -> bool:
        """Whether ``request`` leaves its share no larger than that of ``head`` is already, which then has to give way.
        If it did not, its slots might be asked back at once. Who has been passed for long enough gives way only to
        shares that stay smaller: those that hold as much as its own would pass it for ever."""
        if self._tree is None:
            return False
        to_equals = not has_been_passed_enough(head, self._pool)
        return self._tree.gives_way(owner_of(head), owner_of(request), request.slots, to_equals=to_equals)

    def _order(self, requests: list[PendingAllocation]) -> QueueOrder:
        tree = self._tree
        classes = classify(
            requests,
            rank=self._rank,
            share=owner_of if tree is not None else lambda _: "",
            kind=self._occupancy.demands.kind,
            limited_jobs=self._pool.max_slots_by_job,
            rests=lambda request: is_resting(request, self._pool),
        )
        if tree is not None:
            return FairShareOrder(tree, classes)
        return RankOrder((queue for queues in classes.values() for queue in queues), self._pool.now)

    def _release_excess(self) -> None:
        """Those of jobs that hold more than they may now leave, the newest first."""
        for one in self._limits.excess(self._held, self._rank):
            self._preemption.exclude(one.allocation)
            self._consolidation.exclude(one.allocation)
            self._preempted.append(Preempt(one.allocation, ""))
            self._occupancy.leave(one)

    def _settle_nominations(self) -> list[PendingAllocation]:
        """Start those whose places are free by now, and keep the places of others; the requests that are left."""
        left = [one for one in self._pending if not one.nominated]
        # Where somebody else binds pods, those who were moved are bound last: into what is then left.
        nominated = [one for one in self._pending if one.nominated]
        for request in sorted(nominated, key=lambda one: (one.moved, self._rank(one))):
            is_closed = any(place.node in request.closed_nodes for place in request.nominated)
            if (
                not is_closed
                and request.may_have(request.nominated)
                and self._limits.reached(request, self._rank(request)[0]) is None
            ):
                if self._occupancy.start_at(request, request.nominated):
                    self._start(request, Start(request.allocation, request.nominated))
                    continue
                if self._occupancy.nominate(request, request.nominated):
                    self._take(request)
                    reason = WaitReason.MOVED if request.moved else WaitReason.PREEMPTING
                    self._decisions[request.allocation] = Wait(request.allocation, reason)
                    continue
            self._nominated.append(Nominate(request.allocation, ()))
            left.append(request)
        return left

    def _split(self, requests: list[PendingAllocation]) -> tuple[PendingAllocation | None, list[PendingAllocation]]:
        """Where shares decide, small requests come first again and again: the one that was the first without room
        before is looked at before them, except for those whose shares have less. Ranks need no such help."""
        blocked = [one for one in requests if one.blocked_at is not None]
        if self._tree is None or not blocked:
            return None, requests
        first = min(blocked, key=lambda one: (one.blocked_at, self._rank(one)))
        return first, [one for one in requests if one is not first]

    def _look_at_alone(self, request: PendingAllocation) -> None:
        self._look_at(QueueClass([(self._rank(request), request)]), RankOrder((), self._pool.now))

    def _look_at(self, queue: QueueClass, order: QueueOrder) -> None:
        level = queue.rank[0]
        if level != self._level:
            self._leave_level()
            self._level = level
        request = queue.first
        reached = self._limits.reached(request, level)
        if reached is not None:
            self._keep_limit(request, reached, level)
            self._close(queue, reached.reason, order, detail=reached.detail)
            return
        clearance = self._clearance(queue)
        why = self._in_vain.of(queue, clearance)
        start, in_reserved = self._find_start(request, clearance) if why is None else (None, False)
        if start is not None:
            self._blocked.started(in_reserved=in_reserved, request=request)
            self._start(request, start)
        elif why is None and self._waits_for_those_who_leave(request, level):
            order.block(level)
        elif not self._make_room(queue, clearance):
            is_new = why is None
            reason, detail = why or self._why(request)
            if reason not in _OWN:
                self._blocked_here.append(queue)
            if is_new:
                self._in_vain.note(queue, clearance, (reason, detail))
                if reason not in _OWN:
                    self._block(request, level)
                    order.block(level)
            self._close(queue, reason, order, detail=detail)
            if reason is self._no_room:
                missing = self._free_room.missing_for(request)
                self._decisions[request.allocation] = Wait(request.allocation, reason, missing)
            if reason is WaitReason.TOPOLOGY and self._blocked.is_head(request):
                # Numbers that change with each plan are for the first only: others would have new reasons for nothing.
                detail = self._missing.in_one_domain_now(request, self._occupancy.most_in_domain(request))
                self._decisions[request.allocation] = Wait(request.allocation, reason, detail)
            return
        queue.advance()
        order.put_back(queue)

    def _clearance(self, queue: QueueClass) -> Clearance:
        nodes = self._nodes_of(queue)
        found = self._in_vain.clearance(queue, lambda request: self._blocked.clearance(request, nodes))
        if self._tree is None or found is Clearance.ALL or not self._blocked.passes(queue.first, nodes):
            return found
        return Clearance.ALL

    def _find_start(self, request: PendingAllocation, clearance: Clearance) -> tuple[Start | None, bool]:
        """Where it starts, and whether in room that is kept for others."""
        for in_reserved in (False, True):
            if clearance is Clearance.NOWHERE or (in_reserved and clearance is not Clearance.ALL):
                break
            placements = self._occupancy.start(request, in_reserved=in_reserved)
            if placements is not None:
                return Start(request.allocation, placements), in_reserved
        return None, False

    def _waits_for_those_who_leave(self, request: PendingAllocation, level: int) -> bool:
        """Whether nobody else has to leave for it, as it will have room once those have left that are leaving."""
        if not self._pool.policy.preempts or not self._occupancy.has_room_later(request):
            return False
        self._decisions[request.allocation] = Wait(request.allocation, self._no_room)
        if not self._block(request, level):
            self._occupancy.promise(request)
            self._in_vain.forget()
        self._alone[self._occupancy.demands.of(request).nodes] += 1
        return True

    def _block(self, request: PendingAllocation, level: int) -> bool:
        """``request`` has no room; whether some is kept for it from now on."""
        before = len(self._blocked)
        is_kept = self._blocked.block(request, level)
        if len(self._blocked) > before:
            self._in_vain.forget()
        return is_kept

    def _make_room(self, queue: QueueClass, clearance: Clearance) -> bool:
        """Whether others are asked to leave for the first of ``queue``."""
        request = queue.first
        if clearance is Clearance.NOWHERE or request.grows or is_resting(request, self._pool):
            return False
        placements = self._move_others(request)
        if placements is None:
            found = self._preemption.make_room(request, queue.rank, in_reserved=clearance is Clearance.ALL)
            if found is None:
                return False
            placements, preempted = found
            for one in preempted:
                self._consolidation.exclude(one.allocation)
            self._preempted += preempted
        self._nominated.append(Nominate(request.allocation, placements))
        self._take(request)
        self._decisions[request.allocation] = Wait(request.allocation, WaitReason.PREEMPTING)
        return True

    def _move_others(self, request: PendingAllocation) -> tuple[Placement, ...] | None:
        """Its places, if others are moved out of the way."""
        found = self._consolidation.make_room(request)
        if found is None:
            return None
        placements, moves = found
        for one in moves:
            self._preemption.exclude(one.allocation)
        self._moved += moves
        return placements

    def _why(self, request: PendingAllocation) -> tuple[WaitReason, str]:
        """Why it cannot start, and what is missing."""
        occupancy = self._occupancy
        if not occupancy.has_room_when_empty(request):
            return self._why_never(request)
        if self._blocked.is_behind_others(request):
            return WaitReason.BEHIND_PRIORITY, ""
        if occupancy.has_free_room(request):
            return WaitReason.BEHIND_RESERVATION, ""
        if occupancy.lacks_no_units(request):
            return WaitReason.NO_RESOURCES, self._missing.beside_slots(occupancy.demands.of(request))
        if occupancy.demands.of(request).stays_in_domain:
            return WaitReason.TOPOLOGY, self._missing.in_one_domain(request)
        return self._no_room, ""

    def _why_never(self, request: PendingAllocation) -> tuple[WaitReason, str]:
        """The same where it would not start if nothing ran."""
        occupancy, excluded = self._occupancy, request.blocked_nodes
        open_again = msgspec.structs.replace(request, blocked_nodes=excluded - request.closed_nodes)
        if request.closed_nodes and occupancy.has_room_when_empty(open_again):
            return WaitReason.MAINTENANCE, ""
        if occupancy.has_room_in_all(request, excluded):
            return WaitReason.OUT_OF_SERVICE, self._missing.out_of_service(request)
        if excluded and occupancy.has_room_in_all(request):
            return WaitReason.NODES_EXCLUDED, ""
        if occupancy.demands.of(request).stays_in_domain:
            most = occupancy.most_in_domain_of_all(request)
            if most is not None:
                return WaitReason.NO_SUCH_DOMAIN, self._missing.in_one_domain_for_ever(request, most)
        return self._missing.for_ever(request, occupancy.room_in_all(request))

    def _start(self, request: PendingAllocation, start: Start) -> None:
        self._take(request)
        self._decisions[request.allocation] = start

    def _take(self, request: PendingAllocation) -> None:
        """It has its slots, or places of its own where it will have them."""
        self._in_vain.forget()
        self._limits.start(request)
        if self._tree is not None:
            self._tree.add(owner_of(request), request.slots)

    def _keep_limit(self, request: PendingAllocation, reached: Reached, level: int) -> None:
        """What is less important must not use up what ``request`` waits for, unless it could not start anyway."""
        if self._occupancy.has_room_when_empty(request):
            self._limits.wait(reached, level)

    def _close(self, queue: QueueClass, reason: WaitReason, order: QueueOrder, *, detail: str = "") -> None:
        for request in queue.rest():
            self._decisions[request.allocation] = Wait(request.allocation, reason, detail)
        order.close(queue)

    def _nodes_of(self, queue: QueueClass) -> Names | None:
        if queue.kind not in self._nodes_of_kind or queue.kind is None:
            self._nodes_of_kind[queue.kind] = self._occupancy.demands.of(queue.first).nodes
        return self._nodes_of_kind[queue.kind]

    def _leave_level(self) -> None:
        """Those that waited for room wait for a limit instead that requests of their own level have used up since."""
        counted, self._alone = self._alone, Counter()
        for queue in self._blocked_here:
            reached = self._limits.reached(queue.first, queue.rank[0])
            if reached is None:
                counted[self._nodes_of(queue)] += len(queue)
                continue
            for request in queue.rest():
                self._decisions[request.allocation] = Wait(request.allocation, reached.reason, reached.detail)
            self._keep_limit(queue.first, reached, queue.rank[0])
        self._blocked_here = []
        self._in_vain.forget()
        self._blocked.leave_level(counted)
