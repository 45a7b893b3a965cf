"""The queue policy ``priority``, without preemption.

The most important requests start first, in the order of their jobs. A request that waits for room blocks everything of
lower priority, or else small unimportant work would keep it waiting for ever; requests of its own priority may pass.
Work without slots has a queue of its own: a stuck training job does not keep a TensorBoard from starting.
Source: spec/scheduling.md 5.4, with max_slots enforced (15).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from services.scheduler.plan.decisions import Decision, Start, Wait
from services.scheduler.plan.fit import Room, aux_room, slot_room
from services.scheduler.plan.gang import place_gang
from services.scheduler.plan.order import by_priority, in_queue_order
from services.scheduler.plan.reasons import BLOCKS_LOWER_PRIORITIES, WaitReason
from services.scheduler.plan.snapshot import PoolSnapshot, Request

_Shape = tuple[tuple[int, ...], frozenset[str]]


def plan_by_priority(pool: PoolSnapshot) -> list[Decision]:
    """A decision for each pending request, in queue order: those with slots, then those without."""
    queue = in_queue_order(pool.pending, larger_priority_first=pool.larger_priority_first)
    with_slots = [request for request in queue if request.slots]
    auxiliary = [request for request in queue if not request.slots]
    return [
        *_Pass(pool, slot_room(pool), slot_room(pool, empty=True), WaitReason.NO_ROOM).decide(with_slots),
        *_Pass(pool, aux_room(pool), aux_room(pool, empty=True), WaitReason.NO_AUX_ROOM).decide(auxiliary),
    ]


class _Pass:
    """One of the two queues on its way through the room there is."""

    def __init__(self, pool: PoolSnapshot, room: Room, empty: Room, no_room: WaitReason) -> None:
        self._pool = pool
        self._room = room
        self._empty = empty
        self._no_room = no_room
        self._held_by_job: Counter[str] = Counter()
        for held in pool.held:
            self._held_by_job[held.job] += held.slots
        self._held = self._held_by_job.total()
        # Room only shrinks during a pass, so a shape that found none need not be tried again.
        self._hopeless: dict[_Shape, WaitReason] = {}

    def decide(self, queue: Iterable[Request]) -> list[Decision]:
        decisions: list[Decision] = []
        blocked = False
        for peers in by_priority(queue):
            if blocked:
                decisions += [Wait(request.allocation, WaitReason.BEHIND_PRIORITY) for request in peers]
                continue
            made = [self._decide_one(request) for request in peers]
            blocked = any(isinstance(one, Wait) and one.reason in BLOCKS_LOWER_PRIORITIES for one in made)
            decisions += made
        return decisions

    def _decide_one(self, request: Request) -> Decision:
        reason = self._limit_reached(request)
        if reason is not None:
            return Wait(request.allocation, reason)
        shape = (request.pods, request.blocked_nodes)
        if shape in self._hopeless:
            return Wait(request.allocation, self._hopeless[shape])
        places = place_gang(request.pods, self._room, request.blocked_nodes)
        if places is None:
            self._hopeless[shape] = self._why_no_room(request)
            return Wait(request.allocation, self._hopeless[shape])
        self._held_by_job[request.job] += request.slots
        self._held += request.slots
        return Start(request.allocation, places)

    def _limit_reached(self, request: Request) -> WaitReason | None:
        max_slots = self._pool.max_slots_by_job.get(request.job)
        if max_slots is not None and self._held_by_job[request.job] + request.slots > max_slots and request.slots:
            return WaitReason.JOB_MAX_SLOTS
        quota = self._pool.quota_slots
        if quota is not None and self._held + request.slots > quota and request.slots:
            return WaitReason.POOL_QUOTA
        return None

    def _why_no_room(self, request: Request) -> WaitReason:
        if self._could_fit(request.pods, request.blocked_nodes):
            return self._no_room
        if request.blocked_nodes and self._could_fit(request.pods, frozenset()):
            return WaitReason.NODES_EXCLUDED
        return WaitReason.TOO_LARGE

    def _could_fit(self, pods: tuple[int, ...], excluded: frozenset[str]) -> bool:
        """Whether the pool would have room if nothing ran in it."""
        places = place_gang(pods, self._empty, excluded)
        for place in places or ():
            self._empty.take(place.node, -(place.slots or 1))
        return places is not None
