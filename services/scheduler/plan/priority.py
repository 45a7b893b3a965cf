"""The queue policy ``priority``, without preemption.

The most important requests start first, in the order of their jobs. A request that waits for room blocks everything of
lower priority, or else small unimportant work would keep it waiting for ever; requests of its own priority may pass.
One that waits for the quota of its namespace blocks only those that would use up the same quota.
Work without slots has a queue of its own: a stuck training job does not keep a TensorBoard from starting.
Source: docs/reference/scheduling.md 5.4, with max_slots enforced (15).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property

from services.scheduler.plan.decisions import Decision, Start, Wait
from services.scheduler.plan.fit import Occupancy, Room, aux_room, slot_room
from services.scheduler.plan.gang import has_room, place_gang
from services.scheduler.plan.queue_ranking import by_priority, ranked
from services.scheduler.plan.reasons import BLOCKS_ITS_NAMESPACE, BLOCKS_LOWER_PRIORITIES, WaitReason
from services.scheduler.plan.snapshot import PendingAllocation, PoolSnapshot

_Shape = tuple[tuple[int, ...], frozenset[str]]


def plan_by_priority(pool: PoolSnapshot) -> list[Decision]:
    """A decision for each pending allocation, by rank: those with slots, then those without."""
    queue = ranked(pool.pending, larger_priority_first=pool.larger_priority_first)
    with_slots: list[PendingAllocation] = []
    auxiliary: list[PendingAllocation] = []
    for request in queue:
        (with_slots if request.slots else auxiliary).append(request)
    return [
        *_Pass(pool, slot_room, WaitReason.NO_ROOM).decide(with_slots),
        *_Pass(pool, aux_room, WaitReason.NO_AUX_ROOM).decide(auxiliary),
    ]


class _Pass:
    """One of the two queues on its way through the room there is."""

    def __init__(
        self, pool: PoolSnapshot, room_of: Callable[[PoolSnapshot, Occupancy], Room], no_room: WaitReason
    ) -> None:
        self._pool = pool
        self._room_of = room_of
        self._room = room_of(pool, Occupancy.AS_IT_IS)
        self._no_room = no_room
        self._held_by_job: Counter[str] = Counter()
        self._held_by_namespace: Counter[str] = Counter()
        for held in pool.held:
            self._held_by_job[held.job] += held.slots
            self._held_by_namespace[held.namespace] += held.slots
        self._quotas = dict(pool.quota_by_namespace)
        if pool.quota_slots is not None:
            self._quotas[""] = pool.quota_slots
        self._awaited: set[str] = set()
        """Namespaces for whose quota something more important waits."""
        # Room only shrinks during a pass, so a shape that found none need not be tried again.
        self._hopeless: dict[_Shape, WaitReason] = {}

    def decide(self, queue: Iterable[PendingAllocation]) -> list[Decision]:
        decisions: list[Decision] = []
        blocked = False
        for peers in by_priority(queue):
            if blocked:
                decisions += [Wait(request.allocation, WaitReason.BEHIND_PRIORITY) for request in peers]
                continue
            made = [self._decide_one(request) for request in peers]
            made = [self._reconsider(request, one) for request, one in zip(peers, made, strict=True)]
            blocked = any(isinstance(one, Wait) and one.reason in BLOCKS_LOWER_PRIORITIES for one in made)
            self._awaited |= {
                request.namespace
                for request, one in zip(peers, made, strict=True)
                if isinstance(one, Wait) and one.reason in BLOCKS_ITS_NAMESPACE
            }
            decisions += made
        return decisions

    def _decide_one(self, request: PendingAllocation) -> Decision:
        reason = self._limit_reached(request)
        if reason is not None:
            return Wait(request.allocation, reason)
        shape = (request.pods, request.blocked_nodes)
        if shape in self._hopeless:
            return Wait(request.allocation, self._hopeless[shape])
        placements = place_gang(request.pods, self._room, request.blocked_nodes)
        if placements is None:
            self._hopeless[shape] = self._why_no_room(request)
            return Wait(request.allocation, self._hopeless[shape])
        self._held_by_job[request.job] += request.slots
        self._held_by_namespace[request.namespace] += request.slots
        return Start(request.allocation, placements)

    def _reconsider(self, request: PendingAllocation, decision: Decision) -> Decision:
        """Whoever waits for room waits for the limit instead that requests of its own priority have used up since."""
        if isinstance(decision, Start) or decision.reason not in BLOCKS_LOWER_PRIORITIES:
            return decision
        reason = self._limit_reached(request)
        return decision if reason is None else Wait(request.allocation, reason)

    def _limit_reached(self, request: PendingAllocation) -> WaitReason | None:
        slots = request.slots
        if not slots:
            return None
        max_slots = self._pool.max_slots_by_job.get(request.job)
        if max_slots is not None and self._held_by_job[request.job] + slots > max_slots:
            return WaitReason.JOB_MAX_SLOTS
        return self._quota_reached(request) if self._quotas else None

    def _quota_reached(self, request: PendingAllocation) -> WaitReason | None:
        namespace = request.namespace
        if namespace in self._awaited:
            return WaitReason.BEHIND_PRIORITY
        quota = self._quotas.get(namespace)
        if quota is None or self._held_by_namespace[namespace] + request.slots <= quota:
            return None
        return WaitReason.WORKSPACE_QUOTA if namespace else WaitReason.POOL_QUOTA

    def _why_no_room(self, request: PendingAllocation) -> WaitReason:
        pods, excluded = request.pods, request.blocked_nodes
        if has_room(pods, self._empty, excluded):
            return self._no_room
        if has_room(pods, self._all_in_service, excluded):
            return WaitReason.OUT_OF_SERVICE
        return WaitReason.NODES_EXCLUDED if has_room(pods, self._all_in_service) else WaitReason.TOO_LARGE

    @cached_property
    def _empty(self) -> Room:
        return self._room_of(self._pool, Occupancy.EMPTY)

    @cached_property
    def _all_in_service(self) -> Room:
        return self._room_of(self._pool, Occupancy.ALL_IN_SERVICE)
