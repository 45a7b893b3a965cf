"""Growth of a pool in one plan: for one request that has no room, the cluster is asked for the nodes that are missing.

Of a gang, as many pods as have room get their places at once, and nobody else gets these; the others run on nodes that
come. Every node that was not there when the cluster was asked is kept for the request, until it starts or the deadline
is over: then those that came are for everybody, and the next request is tried. As a whole the request takes part in the
queue like any other, with the pods that still lack a place: it starts without new nodes where that is possible sooner.
Source: docs/reference/scheduling.md 16 (B9).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from services.scheduler.plan.decisions import Decision, EndGrowth, Grow, Plan, Start, Wait
from services.scheduler.plan.growth.dividing import as_asked_for, in_equal_pods
from services.scheduler.plan.growth.held_places import places_left
from services.scheduler.plan.growth.new_nodes import ExpectedNodes, pods_on
from services.scheduler.plan.lifecycle import started
from services.scheduler.plan.queue_pass import QueuePass
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import (
    Growing,
    HeldAllocation,
    NodeSlots,
    PendingAllocation,
    Placement,
    PoolSnapshot,
)

_HELPED: Final = frozenset(
    {
        WaitReason.NO_ROOM,
        WaitReason.NO_AUX_ROOM,
        WaitReason.NO_RESOURCES,
        WaitReason.TOO_LARGE,
        WaitReason.NO_SUCH_NODE,
        WaitReason.FOREIGN_PODS,
        WaitReason.OUT_OF_SERVICE,
        WaitReason.NODES_EXCLUDED,
        WaitReason.BEHIND_PRIORITY,
        WaitReason.BEHIND_RESERVATION,
    }
)
"""Reasons against which nodes help."""
_KEPT_FOR_OTHERS: Final = frozenset({WaitReason.BEHIND_PRIORITY, WaitReason.BEHIND_RESERVATION})
"""Those of them with which free room is somebody else's."""


class GrowthOfPlan:
    """``pool`` is the snapshot as the queue is planned from: the request for which it grows asks only for what it still
    lacks, and has the nodes that came for it to itself."""

    def __init__(self, pool: PoolSnapshot) -> None:
        self.pool = pool
        self._growth = pool.growth
        self._now = pool.growth.now if pool.growth is not None else None
        self._whole: PendingAllocation | None = None
        """The request, as long as the pool grows for it."""
        self._places: tuple[Placement, ...] = ()
        self._came: frozenset[str] = frozenset()
        self._ended: EndGrowth | None = None
        if self._now is not None:
            self._follow(self._now)

    def decide(self, made: Plan, lane: Callable[[PendingAllocation], QueuePass]) -> Plan:
        """The plan, with what becomes of the growth.

        lane  the pass that a request was planned in
        """
        if self._growth is None:
            return made
        if self._ended is not None:
            return msgspec.structs.replace(made, growth=self._ended)
        if self._whole is not None and self._now is not None:
            return self._go_on(made, self._whole, self._now)
        made = self._explained(made)
        return msgspec.structs.replace(made, growth=self._begin(made, lane))

    def _follow(self, now: Growing) -> None:
        pool = self.pool
        request = next((one for one in pool.pending if one.allocation == now.allocation), None)
        if request is None or pool.now >= now.gives_up_at:
            self._ended = EndGrowth(now.allocation, gave_up=request is not None)
            return
        whole = as_asked_for(request, now) if _grows_for(request) else None
        if whole is None:
            # It is asked for in another way by now: what it held are not its pods any more.
            self._ended = EndGrowth(now.allocation, gave_up=False)
            return
        self._whole = whole
        came = [node for node in pool.nodes or () if node.name not in now.known_nodes]
        self._came = frozenset(node.name for node in came)
        self._places = places_left(pool, whole, now.places)
        missing = len(whole.pods) - len(self._places)
        part = msgspec.structs.replace(
            whole,
            pods=whole.pods[:missing],
            nominated=_places_on(came, whole, missing),
            grows=True,
            kept_slots=sum(place.slots for place in self._places),
        )
        self.pool = msgspec.structs.replace(
            pool,
            held=(*pool.held, _held(whole, self._places)) if self._places else pool.held,
            pending=tuple(part if one is request else self._without_came(one) for one in pool.pending),
        )

    def _without_came(self, request: PendingAllocation) -> PendingAllocation:
        if not self._came:
            return request
        return msgspec.structs.replace(request, blocked_nodes=request.blocked_nodes | self._came)

    def _go_on(self, made: Plan, whole: PendingAllocation, now: Growing) -> Plan:
        end = EndGrowth(whole.allocation, gave_up=False)
        growth: Grow | EndGrowth | None = None
        decisions: list[Decision] = []
        for decision in made.decisions:
            changed = decision
            if decision.allocation != whole.allocation:
                if self._came and isinstance(decision, Wait) and decision.reason is WaitReason.NODES_EXCLUDED:
                    changed = Wait(decision.allocation, WaitReason.BEHIND_RESERVATION)
            elif isinstance(decision, Start):
                changed, growth = Start(whole.allocation, (*self._places, *decision.placements)), end
            elif decision.reason in _HELPED:
                growth = self._more(whole, now)
                changed = Wait(whole.allocation, WaitReason.POOL_GROWING, _asked(growth or now))
            elif decision.reason is not WaitReason.POOL_QUOTA:
                growth = end
            # The quota may have counted placeholders which nobody has seen yet: that passes.
            decisions.append(changed)
        nominated = tuple(one for one in made.nominated if one.allocation != whole.allocation)
        return msgspec.structs.replace(made, decisions=tuple(decisions), nominated=nominated, growth=growth)

    def _more(self, whole: PendingAllocation, now: Growing) -> Grow | None:
        """What the cluster is asked for when places that were held are gone."""
        missing = len(whole.pods) - len(self._places)
        if missing <= now.pods:
            return None
        found = ExpectedNodes(self.pool).needed(whole, missing, present=len(now.known_nodes))
        if found is None:
            return None
        return Grow(
            allocation=whole.allocation,
            pods=missing,
            nodes=found.nodes,
            node_slots=found.slots,
            gives_up_at=now.gives_up_at,
            known_nodes=now.known_nodes,
            places=self._places,
        )

    def _begin(self, made: Plan, lane: Callable[[PendingAllocation], QueuePass]) -> Grow | None:
        """For the first that nodes help, of those for which the cluster was not asked in vain lately."""
        assert self._growth is not None
        rests, now, deadline = self._growth.rests_until, self.pool.now, self._growth.deadline
        requests = {one.allocation: one for one in self.pool.pending}
        expected = ExpectedNodes(self.pool)
        hopeless: set[tuple[object, ...]] = set()
        is_first = True
        for wait in made.waits:
            request = requests[wait.allocation]
            kind = (request.pods, request.most_per_pod, request.needs, request.blocked_nodes)
            if (
                wait.reason not in _HELPED
                or kind in hopeless
                or rests.get(wait.allocation, now) > now
                or not _grows_for(request)
            ):
                is_first = False
                continue
            in_reserved = is_first and wait.reason not in _KEPT_FOR_OTHERS
            found = self._ask(request, expected, lane(request), deadline, in_reserved=in_reserved)
            if found is not None:
                return found
            hopeless.add(kind)
            is_first = False
        return None

    def _ask(
        self,
        request: PendingAllocation,
        expected: ExpectedNodes,
        lane: QueuePass,
        deadline: timedelta,
        *,
        in_reserved: bool,
    ) -> Grow | None:
        if not lane.lacks_room(request):
            return None
        in_pods = in_equal_pods(request, expected.slots)
        even = next((one for one in in_pods if expected.needed(one, 1) is not None), None)
        if even is None:
            return None
        request = even
        places = lane.free_places(request, in_reserved=in_reserved)[: len(request.pods) - 1]
        missing = len(request.pods) - len(places)
        found = expected.needed(request, missing)
        if found is None:
            return None
        return Grow(
            allocation=request.allocation,
            pods=missing,
            nodes=found.nodes,
            node_slots=found.slots,
            gives_up_at=self.pool.now + deadline,
            known_nodes=frozenset(node.name for node in self.pool.nodes or ()),
            places=places,
        )

    def _explained(self, made: Plan) -> Plan:
        """The plan, in which those say so for whom no nodes came in time."""
        assert self._growth is not None
        rests, now = self._growth.rests_until, self.pool.now
        if not rests:
            return made

        def explained(decision: Decision) -> Decision:
            until = rests.get(decision.allocation, now)
            if until <= now or not isinstance(decision, Wait) or decision.reason not in _HELPED:
                return decision
            said = f"the cluster has not added nodes in time, and is asked again after {_moment(until)}"
            return msgspec.structs.replace(decision, detail="; ".join(filter(None, (decision.detail, said))))

        return msgspec.structs.replace(made, decisions=tuple(explained(one) for one in made.decisions))


def _grows_for(request: PendingAllocation) -> bool:
    """Whether nodes may be asked for: not for one that requires a domain of the topology, as nobody knows in which a
    new node is."""
    return request.topology is None or not request.topology.required or len(request.pods) == 1


def _held(request: PendingAllocation, places: tuple[Placement, ...]) -> HeldAllocation:
    """The places of a request as what it has already: they count against its limits, and nobody else gets them."""
    pods = ((place.node, place.slots) for place in places)
    return started(request, pods, preemptible=False, expected=None)


def _places_on(nodes: list[NodeSlots], request: PendingAllocation, pods: int) -> tuple[Placement, ...]:
    """Places for so many pods on nodes that nobody else may use; none where there are not enough."""
    slots = request.pods[0]
    usable = (node for node in sorted(nodes, key=lambda node: node.name) if node.available)
    found = [Placement(node.name, slots) for node in usable for _ in range(min(pods_on(node, request), pods))]
    return tuple(found[:pods]) if len(found) >= pods else ()


def _asked(asked: Grow | Growing) -> str:
    nodes = "1 more node" if asked.nodes == 1 else f"{asked.nodes} more nodes"
    slots = "" if not asked.node_slots else f" with {asked.node_slots} slot{'s' * (asked.node_slots > 1)}"
    each = f"{slots} each" if slots and asked.nodes > 1 else slots
    return f"asks the cluster for {nodes}{each}; gives up at {_moment(asked.gives_up_at)}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
