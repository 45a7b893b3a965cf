"""Places that are held for a request while nodes come for the rest of it: which of them are still there."""

from __future__ import annotations

from collections import Counter

from services.scheduler.plan.nodes.amounts import Amounts, amount_of
from services.scheduler.plan.nodes.unmet import unmet
from services.scheduler.plan.room.demand import beside_slots
from services.scheduler.plan.snapshot import NodeSlots, PendingAllocation, Placement, PoolSnapshot


class _Left:
    """What nobody holds of one node."""

    def __init__(self, node: NodeSlots) -> None:
        self._node = node
        self._slots = node.slots - node.lent
        self._aux = node.max_aux
        self._taken: Counter[str] = Counter()

    def take(self, slots: int, requests: Amounts) -> None:
        self._slots -= slots
        self._aux -= not slots
        self._taken.update(dict(requests))

    def has(self, slots: int, requests: Amounts) -> bool:
        if (self._slots if slots else self._aux) < (slots or 1):
            return False
        shaped = self._node.shaped
        if shaped is None or shaped.shape.allocatable is None:
            return True
        taken = shaped.taken()
        return all(
            amount_of(shaped.shape.allocatable, name) - amount_of(taken, name) - self._taken[name] >= amount
            for name, amount in requests
        )


def places_left(pool: PoolSnapshot, request: PendingAllocation, places: tuple[Placement, ...]) -> tuple[Placement, ...]:
    """Those of ``places`` where ``request`` may still run, and of which others have taken nothing."""
    wanted = {place.node for place in places} - request.blocked_nodes
    usable = [node for node in pool.nodes or () if node.name in wanted and node.available and _suits(node, request)]
    left = {node.name: _Left(node) for node in usable}
    for held in pool.held if left else ():
        for node, slots in held.pods:
            if node in left:
                left[node].take(slots, beside_slots(held.needs))
    requests = beside_slots(request.needs)
    found = []
    for place in places:
        if place.node in left and left[place.node].has(place.slots, requests):
            left[place.node].take(place.slots, requests)
            found.append(place)
    return tuple(found)


def _suits(node: NodeSlots, request: PendingAllocation) -> bool:
    shaped, needs = node.shaped, request.needs
    if shaped is None or needs is None:
        return True
    return unmet(needs, shaped.shape, name=node.name, labels=shaped.labels, taken=shaped.empty) is None
